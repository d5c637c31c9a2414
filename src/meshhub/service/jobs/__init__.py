"""Jobs: conversions that outlive the request that submitted them.

`job.py` has the rows, and `store.py` the interface of a store. `sql.py` implements it for SQL databases: `sqlite.py`
for one machine, `postgres.py` for several. `tables.py` and `schema.py` have its tables and their versions, and
`transitions.py` the changes of a state. `files.py` has the inputs and results; `opening.py` opens what settings name.
"""
