from conekg.errors import unknown_choice


def test_an_unknown_choice_says_what_there_is_and_what_is_spelt_alike():
    error = unknown_choice("recipe", "meduim", ["small", "medium", "paper"])
    assert error.message == "unknown recipe 'meduim'; there are small, medium, paper"
    assert error.suggestions == ("medium",)
    assert error.hint == "did you mean 'medium'?"
    assert error.key == "recipe"
    strange = unknown_choice("limit", "xyz", ("top_k", "timeout_s"), key="xyz")
    assert (strange.suggestions, strange.hint, strange.key) == ((), None, "xyz")
