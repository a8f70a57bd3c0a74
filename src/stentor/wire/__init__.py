"""How records come in and go out: dicts, JSON lines, GeoJSON, CloudEvents, Arrow tables, Parquet.

    bytes ──json_lines──▶ object ──geojson, cloudevents──▶ dict ──events, records──▶ model
    Parquet, pandas ──frames──▶ Arrow table ──cells──▶ event_tables ──▶ columns
                                             └──▶ row_tables ──▶ dict, and on as above

Whatever a record comes as, it means the same: `events.py` and `records.py` say what.
"""
