"""What the flow exchanges: the request, the knowledge, the plan, the review and the evidence."""
