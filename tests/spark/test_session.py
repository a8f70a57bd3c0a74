def test_a_session_runs_a_job(spark):
    assert spark.range(10).count() == 10
