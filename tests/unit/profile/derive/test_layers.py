from neuron_tools.profile.derive.layers import layer_tree


def test_every_path_gets_all_that_lies_above_it():
    tree = layer_tree(["/model/b", "/model/a/x"])
    assert tree.paths == ["/", "/model", "/model/a", "/model/a/x", "/model/b"]
    assert tree.parents == [-1, 0, 1, 2, 1]
    assert tree.depths == [0, 1, 2, 3, 2]


def test_numbered_layers_come_in_their_order():
    tree = layer_tree([f"/layers/{number}" for number in (10, 2, 1)])
    assert tree.paths[2:] == ["/layers/1", "/layers/2", "/layers/10"]


def test_slashes_too_many_or_too_few_make_no_difference():
    tree = layer_tree(["model/a", "/model//a/", ""])
    assert tree.paths == ["/", "/model", "/model/a"]


def test_parents_come_before_children():
    tree = layer_tree(["/a/b/c", "/a", "/d"])
    assert all(parent < node for node, parent in enumerate(tree.parents))
    assert tree.children() == [[1, 4], [2], [3], [], []]
