"""What paper B says its figures show, judged over the tables of their runs."""

from runner.rank_collapse import breaking_claims, chain_claims, depth_claims, pretraining_claims

CLAIMS = {
    **chain_claims.CLAIMS,
    **depth_claims.CLAIMS,
    **pretraining_claims.CLAIMS,
    **breaking_claims.CLAIMS,
}
