"""What a claim is, what a figure is, statistics, the style of drawings; knows no paper."""
