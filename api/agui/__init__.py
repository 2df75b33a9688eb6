"""AG-UI 1.0 at `POST /api/agui`, for front ends that show an agent's work while it happens.

Source: https://docs.ag-ui.com
"""
