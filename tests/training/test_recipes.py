from dataclasses import replace

import pytest

from conekg.errors import ConfigError
from conekg.graph.benchmarks import BENCHMARKS
from conekg.graph.knowledge_graph import SPLITS, KnowledgeGraph
from conekg.model.catalog import MODELS
from conekg.training.recipes import DATA_SETS, RECIPES, data_set_of, find_recipe, recipe_of
from tiny import tiny_graph


@pytest.mark.parametrize(
    ("graph", "gamma", "rate", "steps", "dropout"),
    [
        ("FB15k", 30, 5e-5, 450_001, 0.05),
        ("FB15k-237", 30, 5e-5, 300_001, 0.1),
        ("NELL", 20, 1e-4, 300_001, 0.2),
    ],
)
def test_the_paper_recipe_of_cone_is_the_published_schedule(graph, gamma, rate, steps, dropout):
    recipe = find_recipe("paper", "cone", graph)
    assert (recipe.config.gamma, recipe.config.dropout, recipe.config.dim) == (gamma, dropout, 800)
    training = recipe.training
    assert (training.learning_rate, training.steps) == (rate, steps)
    assert (training.batch_size, training.negatives) == (512, 128)
    assert training.negative_sampling == "uniform-published"
    assert (training.drops_at, training.drop_factor) == ((0.5, 0.75), 5.0)
    assert training.cycle == ("path", "other", "path")


@pytest.mark.parametrize(
    ("model", "dim", "gamma"), [("gqe", 1600, 24), ("box", 800, 24), ("beta", 400, 60)]
)
def test_the_paper_recipes_of_the_baselines(model, dim, gamma):
    recipe = find_recipe("paper", model, "NELL")
    assert (recipe.config.dim, recipe.config.gamma) == (dim, gamma)
    assert (recipe.training.learning_rate, recipe.training.steps) == (1e-4, 450_001)


def test_the_fast_recipe_of_cone_depends_on_the_graph():
    nell, fb15k, fb237 = (
        find_recipe("fast", "cone", name) for name in ("NELL", "FB15k", "FB15k-237")
    )
    assert [nell.config.projection, fb15k.config.projection] == ["rotation"] * 2
    assert fb237.config.projection == "published"
    assert [r.config.turned_share for r in (nell, fb15k, fb237)] == [1.0, 0.25, 1.0]
    steps = [recipe.training.steps for recipe in (nell, fb15k, fb237)]
    assert steps == [70_000, 107_000, 110_000]
    for recipe in (nell, fb15k, fb237):
        assert recipe.config.gamma == 8.0
        assert recipe.training.query_times == 4
        assert recipe.training.negative_sampling == "uniform-filtered"
        assert recipe.training.positives == 8
        assert recipe.training.decay == "linear"
    assert [r.training.negatives for r in (nell, fb15k, fb237)] == [128, 512, 128]
    assert [r.training.near_misses for r in (nell, fb15k, fb237)] == [0.0, 0.0625, 0.0]
    assert [r.training.answer_discount for r in (nell, fb15k, fb237)] == [0.5, 0.0, 0.5]
    assert find_recipe("fast", "cone", "mine").training == nell.training


def test_the_fast_recipe_of_emql_is_the_small_one_with_more_and_larger_steps():
    fast, small = find_recipe("fast", "emql", "FB15k"), find_recipe("small", "emql")
    assert fast.config == small.config
    assert (fast.training.steps, fast.training.batch_size) == (4000, 512)
    assert fast.training.cycle == ("facts",)
    assert fast.training.learning_rate == small.training.learning_rate == 1e-2


@pytest.mark.parametrize("model", ["gqe", "box", "beta"])
def test_the_fast_recipes_of_the_baselines_are_the_published_ones_shortened(model):
    fast, paper = (find_recipe(name, model, "NELL") for name in ("fast", "paper"))
    assert fast.config == paper.config
    assert fast.training.steps == paper.training.steps // 5
    assert fast.training.negative_sampling == "uniform-filtered"


def test_a_model_added_to_the_catalog_has_the_shared_schedule(monkeypatch):
    entry = replace(MODELS["gqe"], config=lambda: MODELS["gqe"].config(dim=7))
    monkeypatch.setitem(MODELS, "mine", entry)
    mine, gqe = find_recipe("paper", "mine"), find_recipe("paper", "gqe")
    assert mine.training == gqe.training
    assert mine.config.dim == 7
    assert find_recipe("paper", "emql").training.learning_rate == 1e-3


@pytest.mark.parametrize("model", list(MODELS))
def test_the_medium_recipe_is_a_longer_small_one(model):
    medium, small = (find_recipe(name, model) for name in ("medium", "small"))
    assert medium.config == small.config
    assert medium.training.steps > 3 * small.training.steps
    assert medium.training.trained_shapes() == small.training.trained_shapes()
    assert (medium.training.decay, medium.training.drops_at) == ("linear", ())
    assert medium.training.positives == (1 if MODELS[model].model.has_own_loss else 8)


@pytest.mark.parametrize("model", list(MODELS))
def test_models_without_negation_are_not_trained_on_it(model):
    trained = find_recipe("small", model).training.trained_shapes()
    assert ("2in" in trained) == MODELS[model].model.can_negate
    assert "1p" in trained
    on_fb15k = find_recipe("fast", model, "FB15k").training
    assert on_fb15k.near_misses == (0.0625 if model == "cone" else 0.0)


@pytest.mark.parametrize(
    ("folder", "data_set"),
    [("NELL-betae", "nell995"), ("FB15k-betae", "fb15k"), ("FB15k-237-betae", "fb15k-237")],
)
def test_folders_of_the_official_archive_are_known_by_their_names(folder, data_set):
    """Otherwise they would get the margin and the learning rate of another data set."""
    assert data_set_of(folder) == data_set
    assert find_recipe("paper", "cone", folder) == find_recipe("paper", "cone", data_set)


def test_names():
    assert data_set_of("nell") == "nell995"
    assert data_set_of("FB15k_237") == data_set_of("fb237") == "fb15k-237"
    assert data_set_of("wn18rr-qa") is None
    assert data_set_of("geography") is None
    with pytest.raises(ConfigError) as error:
        find_recipe("papper", "cone")
    assert error.value.suggestions == ("paper",)
    with pytest.raises(ConfigError, match="unknown model"):
        find_recipe("paper", "coin")


@pytest.mark.parametrize("name", RECIPES)
@pytest.mark.parametrize("data_set", DATA_SETS)
def test_a_graph_that_only_has_the_name_of_a_data_set_gets_the_usual_recipe(
    monkeypatch, name, data_set
):
    graph = called(data_set)
    told = f"the graph is called {data_set!r} but has 31 entities and 3 relations, not"
    recipe, why = recipe_of(graph, name, "cone")
    assert recipe == find_recipe(name, "cone")
    assert why.startswith(told) if name in ("paper", "fast") else why is None
    its_size = replace(BENCHMARKS[data_set], size=(31, 3))
    monkeypatch.setitem(BENCHMARKS, data_set, its_size)
    assert recipe_of(graph, name, "cone") == (find_recipe(name, "cone", data_set), None)


def test_a_graph_with_another_name_gets_no_explanation():
    for name in ("mine", "wn18rr-qa"):
        assert recipe_of(called(name), "paper", "cone") == (find_recipe("paper", "cone"), None)


def called(name):
    edges = {split: tiny_graph().edges(split) for split in SPLITS}
    return KnowledgeGraph(name, tiny_graph().vocabulary, edges)
