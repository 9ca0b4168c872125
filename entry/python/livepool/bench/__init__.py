"""`livepool bench`: real models with random weights, eager PyTorch beside livepool's replay.

One concept a file: options (command line), models and transformer_configs (what runs), compare (bit for bit),
timing, measure (one model), held (memory of one fresh process), result (figures, JSON), table, progress, run (the loop), and
latency (`livepool latency`: one call, all ways).
"""
