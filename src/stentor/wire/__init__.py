"""How records come in and go out: dicts, JSON lines, GeoJSON, CloudEvents, Arrow tables, Parquet.

    bytes ──files, json_text, csv──▶ object ──geojson, cloudevents──▶ dict
    dict ──events, records──▶ model
    one event as a dict ──record──▶ memory of one event, no object in between
    many lines of JSON ──json_columns──▶ Arrow table
    Parquet, pandas ──▶ Arrow table ──cells──▶ tables ──▶ columns, or row by row dicts as above

Whatever a record comes as, it means the same: `events.py` and `records.py` say what.
"""
