"""Runs followed through the spans of whatever traces the application already.

Nothing is loaded here: the modules need OpenTelemetry's SDK, and `import ragaliq` must stay cheap.
"""
