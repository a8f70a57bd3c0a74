"""What the papers compare with: plain scans, sorted Z-curves, graphs over points, estimates.

rows                            subscriptions one after another, by the verifier
curve, curve_changes, …         sorted Z-keys in blocks, a rival of the k-d tree
points, point_rows              points that dominate one another, one after another
point_graph, point_commands     G_k over points, with any of the indexes
star_graph                      G*
range_estimates                 about how many ranges a box has on a Hilbert curve
"""
