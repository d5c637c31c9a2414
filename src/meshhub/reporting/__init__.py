"""Reports of checks for people: one page per model with pictures, findings and remedies, as HTML or PDF.

- `collecting`: `collect_model` draws the pictures of a checked model.
- `texts`: headings in English; other languages are in `translations/`.
- `page`: HTML. `pdf`: PDF, with the extra `report`.
- `writing`: `render_report`, which chooses between both.
"""
