"""Scores a folder of Parquet files with Spark's mapInPandas.

python spark.py SOURCE TARGET [JUDGE]     needs: pip install 'ragaliq[parquet]>=1.0' pandas pyspark
"""

import sys
from collections.abc import Iterator

import pandas as pd
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from ragaliq import score_batch, score_batch_schema

BATCH_ROWS = 256


def score(rows: DataFrame, *, judge: str = "local") -> DataFrame:
    def scored(batches: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        for batch in batches:
            yield score_batch(batch, judge=judge)

    # Spark asks for the columns before it has seen a row.
    added = from_arrow_schema(score_batch_schema(judge=judge))
    schema = StructType([*rows.schema.fields, *added.fields])
    return rows.mapInPandas(scored, schema=schema)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    spark = (
        SparkSession.builder.appName("ragaliq backfill")
        .config("spark.sql.execution.arrow.maxRecordsPerBatch", BATCH_ROWS)
        .getOrCreate()
    )
    given = spark.read.parquet(sys.argv[1])
    judge = sys.argv[3] if len(sys.argv) > 3 else "local"
    score(given, judge=judge).write.mode("error").parquet(sys.argv[2])
    written = spark.read.parquet(sys.argv[2])
    counts = written.groupBy("faithfulness_status").count().collect()
    print({row["faithfulness_status"]: row["count"] for row in counts})
    spark.stop()
