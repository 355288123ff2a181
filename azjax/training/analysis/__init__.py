"""What looks at runs: forecasts before them; plots, comparisons and cards after."""
