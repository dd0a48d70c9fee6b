"""What everything stands on, without torch: errors, random streams, progress, what a study is."""
