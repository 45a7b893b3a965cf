"""REST shapes of the columns of a project (docs/reference/platform.md 9.2)."""

from __future__ import annotations

from services.api.wire.base import Double, Message, WireEnum


class TableType(WireEnum):
    UNSPECIFIED = "TABLE_TYPE_UNSPECIFIED", 0
    EXPERIMENT = "TABLE_TYPE_EXPERIMENT", 1
    RUN = "TABLE_TYPE_RUN", 2


class WireLocation(WireEnum):
    UNSPECIFIED = "LOCATION_TYPE_UNSPECIFIED", 0
    EXPERIMENT = "LOCATION_TYPE_EXPERIMENT", 1
    HYPERPARAMETERS = "LOCATION_TYPE_HYPERPARAMETERS", 2
    VALIDATIONS = "LOCATION_TYPE_VALIDATIONS", 3
    TRAINING = "LOCATION_TYPE_TRAINING", 4
    CUSTOM_METRIC = "LOCATION_TYPE_CUSTOM_METRIC", 5
    RUN = "LOCATION_TYPE_RUN", 6
    RUN_HYPERPARAMETERS = "LOCATION_TYPE_RUN_HYPERPARAMETERS", 7
    RUN_METADATA = "LOCATION_TYPE_RUN_METADATA", 8


class WireColumnType(WireEnum):
    UNSPECIFIED = "COLUMN_TYPE_UNSPECIFIED", 0
    TEXT = "COLUMN_TYPE_TEXT", 1
    NUMBER = "COLUMN_TYPE_NUMBER", 2
    DATE = "COLUMN_TYPE_DATE", 3
    ARRAY = "COLUMN_TYPE_ARRAY", 4


class ProjectColumnsQuery(Message):
    """UNSPECIFIED is the table of experiments."""

    table_type: TableType = TableType.UNSPECIFIED


class ProjectColumn(Message, kw_only=True):
    column: str
    location: WireLocation
    type: WireColumnType
    display_name: str = ""


class ProjectColumnsResponse(Message, kw_only=True):
    columns: list[ProjectColumn]


class MetricsRange(Message, kw_only=True):
    metrics_name: str
    min: Double
    max: Double


class MetricRangesResponse(Message, kw_only=True):
    ranges: list[MetricsRange]


class MetadataValuesResponse(Message, kw_only=True):
    values: list[str]
