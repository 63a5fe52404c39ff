import copy
import tomllib
from dataclasses import asdict, dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conekg.errors import ConfigError, UnsupportedOperatorError
from conekg.model.catalog import MODELS, ModelEntry
from conekg.model.cone import Cone, ConeConfig
from conekg.model.gqe import Gqe, GqeConfig
from conekg.training.recipe import Pool
from conekg.training.recipe_change import change_recipe, read_config
from conekg.training.recipe_file import dump_recipe, parse_recipe, recipe_from_table
from conekg.training.recipes import RECIPES, find_recipe


def test_settings_change_values_of_every_type():
    recipe = change_recipe(
        find_recipe("paper", "cone"),
        {},
        [
            "training.steps=7",
            "training.learning_rate=1e-3",
            "training.negative_sampling=uniform-published",
            "training.drops_at=[0.25, 0.5]",
            "training.fresh_moments=false",
            "training.validate_every=none",
            "training.pools.path.2p=3",
            "model.dim=16",
            "model.gamma=9",
        ],
    )
    assert recipe.training.steps == 7
    assert recipe.training.learning_rate == 1e-3
    assert recipe.training.negative_sampling == "uniform-published"
    assert recipe.training.drops_at == (0.25, 0.5)
    assert recipe.training.fresh_moments is False
    assert recipe.training.validate_every is None
    assert recipe.training.pool("path").shares == (("1p", 1.0), ("2p", 3.0), ("3p", 1.0))
    assert recipe.config.dim == 16
    assert recipe.config.gamma == 9.0


@pytest.mark.parametrize(
    "setting", ["model={dim=32}", 'model={name="box", dim=32}', "training={steps=5}", "training={}"]
)
@pytest.mark.parametrize("model", ["cone", "box"])
def test_a_setting_of_a_whole_part_is_refused(setting, model):
    """It would replace the recipe's other values, and its model, by the defaults."""
    part = setting.partition("=")[0]
    with pytest.raises(ConfigError, match=f"as in --set {part}.KEY=VALUE") as error:
        change_recipe(find_recipe("small", model), {}, [setting])
    assert error.value.key == part


def test_an_option_of_a_model_that_may_be_left_out_can_be_unset(monkeypatch):
    @dataclass(frozen=True)
    class Config(GqeConfig):
        width: int | None = None

    monkeypatch.setitem(MODELS, "mine", ModelEntry(Gqe, Config, "mine"))
    wide = change_recipe(find_recipe("small", "mine"), {}, ["model.width=5"])
    assert wide.config.width == 5
    unset = change_recipe(wide, {}, ["model.width=none"])
    assert unset == find_recipe("small", "mine")
    for recipe in (wide, unset):
        assert parse_recipe(dump_recipe(recipe)) == recipe
        assert change_recipe(wide, tomllib.loads(dump_recipe(recipe)), []) == recipe
    with pytest.raises(ConfigError, match="whole number"):
        change_recipe(wide, {}, ["model.dim=none"])


@pytest.mark.parametrize(
    ("setting", "key", "suggestion"),
    [
        ("training.step=7", "training.step", "training.steps"),
        ("training.learning_rat=0.1", "training.learning_rat", "training.learning_rate"),
        ("trainin.steps=7", "trainin", "training"),
        ("steps=7", "steps", "training.steps"),
        ("gamma=7", "gamma", "model.gamma"),
        ("model.dims=7", "model.dims", "model.dim"),
    ],
)
def test_an_unknown_key_is_refused_with_a_suggestion(setting, key, suggestion):
    recipe, written = find_recipe("paper", "cone"), tomllib.loads(setting)
    for changes, settings in (({}, [setting]), (written, [])):
        with pytest.raises(ConfigError, match=f"unknown key '{key}'") as error:
            change_recipe(recipe, changes, settings)
        assert suggestion in error.value.suggestions
        assert error.value.key == key


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"train": {"steps": 1}}, "unknown key 'train'; a recipe has recipe, model, training"),
        (
            {"training": {"pool": {"path": {"2p": 1}}}},
            r"unknown key 'training\.pool'; training has",
        ),
        ({"model": {"dims": {"a": 1}}}, r"unknown key 'model\.dims'; model has dim, gamma"),
        (
            {"training": {"steps": {"a": 1}}},
            r"training\.steps = \{'a': 1\}: a whole number is needed",
        ),
    ],
)
def test_a_table_in_the_wrong_place_is_refused(changes, told):
    with pytest.raises(ConfigError, match=told):
        change_recipe(find_recipe("paper", "cone"), changes, [])


@pytest.mark.parametrize(
    ("setting", "complaint"),
    [
        ("training.steps=many", "whole number"),
        ("training.steps=1.5", "whole number"),
        ("training.steps=true", "whole number"),
        ("training.learning_rate=fast", "a number"),
        ("training.fresh_moments=1", "true or false"),
        ("training.drops_at=0.5", "list"),
        ("training.precision=half", "float32 or tf32 or bfloat16"),
        ("training.pools.path=1", "table"),
        ("training.pools.path.1p=true", "number"),
        ("training.steps.more=1", "has no keys"),
        ("training=1", "table"),
        ("model.name=con", "unknown model"),
        ("model.name=none", "unknown model 'none'"),
        ("model=none", "table"),
        ("model=box", "table of keys is needed; the model is chosen by --model box"),
        ("training.batch_size=none", "whole number"),
        ("model.name=gqe", "choose the other by --model gqe"),
        ("recipe=small", "name alone; --recipe chooses"),
        ("training.pools.new.1p=1", "would change nothing"),
        ("training.pools.step.1p=1", "another use for 'step'"),
        ("training.pools.peak_memory_gib.1p=1", "another use for 'peak_memory_gib'"),
        ("training.steps", "key=value"),
        ("=3", "key=value"),
        ("training.st eps=3", "unknown key 'training.st eps'"),
        pytest.param("training.steps=" + "9" * 5000, "whole number", id="digits"),
        pytest.param("training.steps=" + "[" * 5000, "whole number", id="brackets"),
        pytest.param("model.gamma=1" + "0" * 400, "finite number", id="float"),
        pytest.param("training.pools.path.1p=1" + "0" * 400, "positive number", id="share"),
        ("training.steps=5\nseed=3", "whole number"),
    ],
)
def test_values_of_the_wrong_type_are_refused(setting, complaint):
    with pytest.raises(ConfigError, match=complaint):
        change_recipe(find_recipe("paper", "cone"), {}, [setting])


@pytest.mark.parametrize("value", ["inf", "-inf", "nan"])
@pytest.mark.parametrize("key", ["training.drop_factor", "training.learning_rate", "model.gamma"])
def test_numbers_that_are_not_finite_are_refused(key, value):
    """They would be written as JSON writes them, which is not TOML: the run could not be opened."""
    with pytest.raises(ConfigError, match="finite"):
        change_recipe(find_recipe("paper", "cone"), {}, [f"{key}={value}"])


@pytest.mark.parametrize(
    "setting",
    [
        "training.positives=4",
        "training.negatives=7",
        "training.negative_sampling=uniform-published",
        "training.shared_negatives=true",
        "training.adversarial_temperature=0.25",
        "training.answer_discount=0.25",
        "training.query_times=4",
        "training.compile_operators=true",
    ],
)
def test_settings_that_a_loss_of_its_own_ignores_are_refused(setting):
    key, _, _ = setting.partition("=")
    with pytest.raises(ConfigError, match="change nothing") as error:
        change_recipe(find_recipe("small", "emql"), {}, [setting])
    assert error.value.key == key
    recipe = find_recipe("small", "emql")
    assert change_recipe(recipe, {}, [f"training.negatives={recipe.training.negatives}"]) == recipe
    assert change_recipe(find_recipe("small", "gqe"), {}, [setting]).model == "gqe"


def test_pools_are_refused_for_a_model_with_its_own_loss():
    recipe = find_recipe("paper", "emql")
    in_file = {"training": {"pools": {"path": {"1p": 1.0, "2p": 3.0}}}}
    new = ['training.cycle=["mine"]', "training.pools.mine.1p=1"]
    for changes, settings, pool in (
        ({}, ["training.pools.path.2p=3"], "path"),
        (in_file, [], "path"),
        ({}, new, "mine"),
    ):
        with pytest.raises(ConfigError, match=r"change nothing.*leave it out") as error:
            change_recipe(recipe, changes, settings)
        assert error.value.key == f"training.pools.{pool}"
    assert change_recipe(recipe, {}, ["training.pools.path.2p=1"]) == recipe
    # The number of updates per step is used by every model.
    assert change_recipe(recipe, {}, ['training.cycle=["path"]']).training.cycle == ("path",)


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("e.r.r.r", "3p"),
        ("e.r & !e.r", "2in"),
        ("(e.r & e.r).r & e.r", "((e.r & e.r).r & e.r)"),
        (" 2i ", "2i"),
    ],
)
def test_a_shape_of_a_pool_may_be_written_in_any_notation(written, name):
    """Query sets use one name for each shape; by another spelling no queries would be found."""
    in_file = {"training": {"cycle": ["mine"], "pools": {"mine": {"1p": 1, written: 2}}}}
    settings = ['training.cycle=["mine"]', "training.pools.mine.1p=1"]
    quoted = f'training.pools.mine."{written}"=2'
    base = find_recipe("paper", "cone")
    for changes, added in ((in_file, []), ({}, [*settings, quoted])):
        changed = change_recipe(base, changes, added)
        assert changed.training.pool("mine").shares == (("1p", 1.0), (name, 2.0))
    whole = tomllib.loads(dump_recipe(base)) | {"recipe": "paper"}
    whole["training"] |= in_file["training"]
    again = change_recipe(find_recipe("small", "cone"), whole, [])
    assert again.training.trained_shapes() == ("1p", name)


@pytest.mark.parametrize(
    ("pool", "told", "suggestion"),
    [
        ({"1p": 1, "2pp": 1}, r"training\.pools\.mine: '2pp' is no shape", "2p"),
        ({"e..r": 1}, "'e..r' is no shape", None),
        ({"": 1}, "'' is no shape", None),
        ({"e.r.^r": 1}, "leave it out", None),
        ({"2p": 1, "e.r.r": 2}, "'e.r.r' is the shape 2p, which the pool has already", None),
        ({"1p": 1, "2u": 1}, "2u, a union", None),
        ({"1p": 1, "(e.r | e.r) & e.r": 1}, "a union", None),
    ],
)
def test_pools_with_invalid_shapes_are_refused(pool, told, suggestion):
    changes = {"training": {"cycle": ["mine"], "pools": {"mine": pool}}}
    with pytest.raises(ConfigError, match=told) as error:
        change_recipe(find_recipe("paper", "cone"), changes, [])
    assert error.value.key.startswith("training.pools")
    assert suggestion is None or suggestion in error.value.suggestions


@pytest.mark.parametrize("shape", ["2in", "2u-DM", "e.r & !e.r.r"])
def test_shapes_that_the_model_has_no_operator_for_are_refused(shape):
    changes = {"training": {"cycle": ["mine"], "pools": {"mine": {"1p": 1, shape: 1}}}}
    for model in ("gqe", "box"):
        with pytest.raises(UnsupportedOperatorError, match=f"'{model}' lacks negation, which"):
            change_recipe(find_recipe("small", model), changes, [])
    for model in ("cone", "beta"):
        trained = change_recipe(find_recipe("small", model), changes, []).training.trained_shapes()
        assert len(trained) == 2


def test_a_pool_of_a_file_that_no_step_draws_from_is_refused():
    """Otherwise a run would be taken for one that was trained on the shapes of the pool."""
    recipe = find_recipe("small", "cone")
    changes = {"training": {"pools": {"own": {"e.r.r.r.r": 1.0}}}}
    with pytest.raises(ConfigError, match="would change nothing") as error:
        change_recipe(recipe, changes, ["training.steps=5"])
    assert error.value.key == "training.pools.own"
    remedy = "training.cycle = ['everything', 'own']"
    assert remedy in str(error.value)
    assert "e.r.r.r.r" in change_recipe(recipe, changes, [remedy]).training.trained_shapes()


@pytest.mark.parametrize("place", ["file", "setting"])
def test_a_file_may_have_more_pools_than_the_cycle_that_is_chosen(place):
    pools = {"one": {"1p": 1.0}, "two": {"2p": 1.0}}
    of_file = {"cycle": ["two"]} if place == "file" else {}
    settings = [] if place == "file" else ['training.cycle=["two"]']
    changed = change_recipe(
        find_recipe("small", "cone"), {"training": {"pools": pools, **of_file}}, settings
    )
    assert changed.training.trained_shapes() == ("2p",)
    assert changed.training.pool("one").shares == (("1p", 1.0),)


def test_pools_that_came_with_a_recipe_are_left_as_they_are():
    """A run from before shapes were checked can be resumed, whatever its unused pools hold."""
    recipe = find_recipe("paper", "cone")
    idle = Pool("idle", (("whatever", 1.0),))
    recipe = replace(
        recipe, training=replace(recipe.training, pools=(*recipe.training.pools, idle))
    )
    assert change_recipe(recipe, {}, ["training.seed=3"]).training.pool("idle") == idle


def test_near_misses_are_refused_where_nothing_is_negated():
    setting = "training.near_misses=0.25"
    for recipe, settings in (
        (find_recipe("small", "gqe"), [setting]),
        (find_recipe("paper", "cone"), ['training.cycle=["path"]', setting]),
        (
            find_recipe("paper", "cone"),
            ['training.cycle=["law"]', 'training.pools.law={"1p" = 1.0, "2u-DM" = 1.0}', setting],
        ),
        (find_recipe("small", "emql"), [setting]),
    ):
        with pytest.raises(ConfigError, match="change nothing") as error:
            change_recipe(recipe, {}, settings)
        assert error.value.key == "training.near_misses"
    spelled = ['training.cycle=["mine"]', 'training.pools.mine={"(e.r & (!e.r.r))" = 1.0}']
    for settings in ([], spelled):
        changed = change_recipe(find_recipe("paper", "cone"), {}, [*settings, setting])
        assert changed.training.near_misses == 0.25
    # A value that comes with the recipe is not refused.
    shorter = change_recipe(find_recipe("fast", "cone", "FB15k"), {}, ['training.cycle=["path"]'])
    assert shorter.training.near_misses > 0


@pytest.mark.parametrize("setting", ["training.drop_factor=7", "training.fresh_moments=false"])
@pytest.mark.parametrize("decay", ["drops", "linear"])
def test_drop_settings_are_refused_if_nothing_drops(setting, decay):
    recipe, key = find_recipe("paper", "cone"), setting.partition("=")[0]
    never = [f"training.decay={decay}", "training.drops_at=[]"]
    in_file = {"training": {"drops_at": [], "decay": decay} | dict([_as_item(setting)])}
    for changes, settings in (({}, [*never, setting]), ({}, [setting, *never]), (in_file, [])):
        with pytest.raises(ConfigError, match="change nothing: the learning rate never") as caught:
            change_recipe(recipe, changes, settings)
        assert caught.value.key == key
    assert change_recipe(recipe, {}, [setting]).training.drops_at
    assert change_recipe(recipe, {}, [setting, "training.drops_at=[0.1]"]).training.drops_at


def _as_item(setting):
    key, _, value = setting.partition("=")
    return key.removeprefix("training."), tomllib.loads(f"value = {value}")["value"]


def test_drop_settings_are_refused_even_with_their_default_values():
    never = ["training.drops_at=[]"]
    for setting in ("training.drop_factor=5", "training.fresh_moments=true"):
        with pytest.raises(ConfigError, match="change nothing"):
            change_recipe(find_recipe("small", "cone"), {}, [*never, setting])


def test_drop_settings_that_come_with_a_recipe_are_not_refused():
    """Without its drops, `small` still has settings for them, and so has its file."""
    small, fast = find_recipe("small", "cone"), find_recipe("fast", "cone")
    never = change_recipe(small, {}, ["training.drops_at=[]"])
    assert never.training.drop_factor == small.training.drop_factor != fast.training.drop_factor
    assert change_recipe(never, {}, ["training.drop_factor=3"]) == never
    recorded = dump_recipe(never)
    assert parse_recipe(recorded) == never
    for recipe in (small, fast):
        again = change_recipe(recipe, tomllib.loads(recorded), []).training
        assert (again.drops_at, again.drop_factor, again.fresh_moments) == ((), 3.0, False)


def test_a_configuration_file_is_merged_and_settings_come_last(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(
        '[model]\ndim = 24\n[training]\nsteps = 5\nseed = 3\ncycle = ["path"]\n'
        "[training.pools.path]\n1p = 1\n"
    )
    recipe = change_recipe(find_recipe("paper", "cone"), read_config(path), ["training.seed=4"])
    assert (recipe.config.dim, recipe.training.steps, recipe.training.seed) == (24, 5, 4)
    assert recipe.training.pool("path").shares == (("1p", 1.0),)  # a pool is replaced as a whole
    assert recipe.training.pool("other").shapes[0] == "2i"


def test_a_configuration_stays_as_it_was_given():
    """Otherwise a second recipe made from the same table would have the settings of the first."""
    changes = {"training": {"cycle": ["mine"], "pools": {"mine": {"1p": 1.0}}}}
    given = copy.deepcopy(changes)
    changed = change_recipe(find_recipe("small", "cone"), changes, ["training.pools.mine.2p=2"])
    assert changed.training.trained_shapes() == ("1p", "2p")
    assert changes == given
    assert change_recipe(find_recipe("small", "cone"), changes, []).training.trained_shapes() == (
        "1p",
    )


def test_a_file_for_another_model_says_how_to_choose_it():
    """Such as the `recipe.toml` of a run, with keys that this model does not have."""
    changes = {"model": {"name": "gqe", "dim": 16}}
    with pytest.raises(ConfigError, match="choose the other by --model gqe") as error:
        change_recipe(find_recipe("small", "cone"), changes, [])
    assert error.value.key == "model.name"
    assert change_recipe(find_recipe("small", "gqe"), changes, []).config.dim == 16


def test_a_recipe_with_an_idle_pool_can_be_given_again():
    """The recipe keeps its own pools, unused, when a file has others and names them in `cycle`."""
    changes = {"training": {"cycle": ["mine"], "pools": {"mine": {"1p": 1.0}}}}
    once = change_recipe(find_recipe("small", "cone"), changes, ["training.pools.mine.2p=2"])
    assert once.training.trained_shapes() == ("1p", "2p")
    again = change_recipe(find_recipe("small", "cone"), tomllib.loads(dump_recipe(once)), [])
    assert again == once


@pytest.mark.parametrize("model", list(MODELS))
@pytest.mark.parametrize("name", RECIPES)
@given(times=st.none() | st.integers(1, 9), validate=st.none() | st.integers(1, 99))
def test_the_recipe_of_a_run_is_the_same_over_any_other(name, model, times, validate):
    """Values that are None in a run's recipe have no key in its file, and stay None."""
    recipe = find_recipe(name, model, "FB15k")
    unset = replace(recipe.training, query_times=times, validate_every=validate)
    recipe = replace(recipe, training=unset)
    recorded = tomllib.loads(dump_recipe(recipe))
    for other in RECIPES:
        assert change_recipe(find_recipe(other, model), recorded, []) == recipe


def test_a_model_derived_from_another_can_be_given_the_settings_of_its_run(monkeypatch):
    """As the guide says: the run's recipe without its lines `recipe` and `name`."""

    @dataclass(frozen=True)
    class Config(ConeConfig):
        bend: float = 0.5

    class Bent(Cone):
        name = "bent"

    monkeypatch.setitem(MODELS, "bent", ModelEntry(Bent, Config, "for this test"))
    cone, bent = find_recipe("small", "cone"), find_recipe("small", "bent")
    assert (bent.training, bent.config.dim) != (cone.training, cone.config.dim)
    lines = dump_recipe(cone).splitlines()
    kept = [line for line in lines if not line.startswith(("recipe =", "name ="))]
    given = change_recipe(bent, tomllib.loads("\n".join(kept)), [])
    # Pools of its own recipe stay, but no step draws from them.
    used = tuple(given.training.pool(pool.name) for pool in cone.training.pools)
    assert replace(given.training, pools=used) == cone.training
    assert asdict(given.config) == asdict(cone.config) | {"bend": 0.5}


def test_settings_come_after_the_recipe_of_a_run():
    recorded = tomllib.loads(dump_recipe(find_recipe("paper", "cone")))
    changed = change_recipe(find_recipe("small", "cone"), recorded, ["training.seed=7"])
    assert changed.training == replace(find_recipe("paper", "cone").training, seed=7)
    with pytest.raises(ConfigError, match="change nothing"):
        change_recipe(
            find_recipe("small", "cone"),
            recorded,
            ["training.drops_at=[]", "training.drop_factor=3"],
        )


@pytest.mark.parametrize(
    ("changes", "missing"),
    [
        ({"recipe": "small"}, "model.name"),
        ({"recipe": "paper", "training": {"steps": 3}}, "model.name"),
        ({"recipe": "paper", "training": 3}, "training"),
    ],
)
def test_a_part_of_a_recipe_that_names_it_is_refused(changes, missing):
    """It could be meant as a whole recipe or as changes, which give different results."""
    with pytest.raises(ConfigError) as error:
        change_recipe(find_recipe("paper", "cone"), changes, [])
    assert error.value.key == missing


def test_a_recipe_that_lacks_a_key_is_told_which():
    recorded = tomllib.loads(dump_recipe(find_recipe("paper", "cone")))
    del recorded["training"]["seed"]
    with pytest.raises(ConfigError, match=r"lacks training\.seed; leave out `recipe`") as error:
        change_recipe(find_recipe("small", "cone"), recorded, [])
    assert error.value.key == "training.seed"
    del recorded["recipe"]
    assert change_recipe(find_recipe("small", "cone"), recorded, []).name == "small"


def test_the_recipe_of_an_earlier_version_is_still_that_recipe():
    """Its run is opened with it; keys that it lacks do not come from --recipe."""
    recorded = tomllib.loads(dump_recipe(find_recipe("paper", "cone")))
    for key in ("positives", "shared_negatives", "near_misses", "answer_discount", "decay"):
        del recorded["training"][key]
    for key in ("projection", "turned_share"):
        del recorded["model"][key]
    other = find_recipe("fast", "cone", "fb15k")
    assert other.config.turned_share != 1
    assert change_recipe(other, recorded, []) == find_recipe("paper", "cone")
    assert recipe_from_table(recorded) == find_recipe("paper", "cone")


def test_unreadable_configurations_say_which_file(tmp_path):
    with pytest.raises(ConfigError, match=r"nowhere\.toml"):
        read_config(tmp_path / "nowhere.toml")
    broken = tmp_path / "broken.toml"
    for text in ("steps = = 3", "steps = " + "9" * 5000, "steps = " + "[" * 5000):
        broken.write_text(text)
        with pytest.raises(ConfigError, match=r"broken\.toml is not TOML"):
            read_config(broken)


def test_a_byte_order_mark_before_a_configuration_is_skipped(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text("[training]\nsteps = 5\n", encoding="utf-8-sig")
    assert read_config(path) == {"training": {"steps": 5}}
