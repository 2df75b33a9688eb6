"""What tests share: services, stand-ins, scenes and made-up databases."""
