"""Any DataFrame → canonical records, in native columns."""
