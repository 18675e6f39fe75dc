"""When each partition ran: measured, drawn, compared with the plan."""
