from hypothesis import HealthCheck, settings

# A busy machine is not a failed test, and nothing is to be left in the tree.
settings.register_profile(
    "cluster",
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("cluster")
