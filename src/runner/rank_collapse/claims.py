"""What paper B says its figures show, judged over the tables of their runs."""

from runner.rank_collapse import chain_claims

CLAIMS = {**chain_claims.CLAIMS}
