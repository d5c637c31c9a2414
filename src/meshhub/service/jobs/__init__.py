"""Jobs: conversions that outlive the request that submitted them.

`job.py` has the rows, `store.py` the interface of a store, `sql.py` its implementation for SQL databases, `sqlite.py`
the database of one machine, `files.py` the folder of inputs and results.
"""
