"""What `Tests/Stages/74-tenants` is made of: attacks of one tenant, an honest client of another one, and the nodes between them.

`attack.py` says what an attack is. Attacks of a kind stand in a file together; `ALL` has each of them, in the order in which
they run. Whoever adds one writes a class, adds it to the list of its file, and nothing else.
"""
from . import documents, floods, news, places, queries, reads, saves

ALL = [*queries.ATTACKS, *reads.ATTACKS, *saves.ATTACKS, *documents.ATTACKS, *places.ATTACKS, *floods.ATTACKS, *news.ATTACKS]
