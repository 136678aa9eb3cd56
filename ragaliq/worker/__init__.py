"""Jobs beyond one process: published by monitors, judged by `ragaliq worker`, kept by a broker."""
