"""The names that users import: none gets lost, whatever moves behind them."""

import pickle
from importlib import import_module

import pytest

import durable_pg
from durable_pg import errors

PUBLIC = {
    "durable_pg": """
        AsyncDurable AsyncIdentity AsyncMaintainer AsyncRun CheckpointUpgrades Durable EffectFailed Failed
        Identity Maintainer Run Succeeded Unknown checkpoint_upgrade declared_tools durable_tool
    """,
    "durable_pg.errors": """
        AccessRefused AppendOnly ArgumentInvalid BY_SQLSTATE BadInput CallCancelled CannotConnect
        CheckpointDiffers CheckpointGap CheckpointNewer CheckpointUpgradeMissing Conflict ConnectionFault
        ConnectionLost CounterShrinks DurableError EffectDiverged EffectError EffectFailed EffectInFlight
        EffectNotFound EffectPayloadDiffers EffectTimedOut EffectUnverified EventDiffers FrozenColumn
        IdentifierInvalid IdentityConflict IdentityMissing IllegalTransition IsolationRefused JsonNotReadable
        JsonNotStorable LeaseLost LockTimeout LoginIsRuntime OpeningMessageDiffers OwnerRefused PoolExhausted
        PoolNeeded PoolNotOpen ReadOnly Refused RevisionDiffers RewindTargetUnknown RoleMissing RolesNotReady
        RowsExist RunAwaiting RunBusy RunInputDiffers RunNotFound RunOpen RunSettled SchemaMissing SchemaOlder
        SessionClosed SessionDiffers SessionNotFound SetupError StaleRevision TableUnfit ToolsIncomplete
        TryAgain UnexpectedError WriteOnce WrongState
    """,
    "durable_pg.migrate": """
        BadRequest CannotConnect DatabaseIsNewer DatabaseUnfit DbaMustAct LoginIsRuntime LoginRefused
        MigrationError Report RowsExist WaitTimedOut current downgrade head offline_sql upgrade
    """,
    "durable_pg.pytest_plugin": """
        DurableDatabase as_app as_operator durable_db
    """,
    "durable_pg.tables": """
        app_states audit_log checkpoints effect_calls effects events metadata runs sessions tools transitions
        user_states
    """,
    "durable_pg.types": """
        AppendedEvent BegunEffect Checkpoint Effect EffectStatus Event FinalStatus FinishedEffect IntentScope
        NewEvent ReapedRuns RecordedStep ReplayClass ResumableRun Run RunAnswer RunOutcome RunStatus Session
        StartAnswer State Tool Verdict Verification
    """,
}


@pytest.mark.parametrize("module", PUBLIC)
def test_every_public_name_is_where_users_import_it_from(module: str) -> None:
    found = import_module(module)
    missing = [name for name in PUBLIC[module].split() if not hasattr(found, name)]
    assert missing == []


def test_what_the_package_hands_on_shows_itself_under_its_public_name() -> None:
    assert durable_pg.__all__ == PUBLIC["durable_pg"].split()
    for name in (
        "AsyncDurable",
        "AsyncIdentity",
        "AsyncMaintainer",
        "AsyncRun",
        "Durable",
        "Identity",
        "Maintainer",
        "Run",
    ):
        kind = getattr(durable_pg, name)
        assert (kind.__module__, kind.__qualname__) == ("durable_pg", name)
        assert pickle.loads(pickle.dumps(kind)) is kind  # noqa: S301  # our own bytes


def test_every_class_of_the_errors_is_public() -> None:
    bases = {"HeldEffect", "SettledRun"}
    classes = {
        name for name, kind in vars(errors).items() if isinstance(kind, type) and kind.__module__ == errors.__name__
    }
    assert classes - bases == set(PUBLIC["durable_pg.errors"].split()) - {"BY_SQLSTATE"}
