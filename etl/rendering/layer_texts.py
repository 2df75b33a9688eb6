"""What a model is, by its layer."""

from common.text import Text
from etl.schemas.requirement import Layer

LAYER_TEXTS: dict[Layer, Text] = {
    "SRC": Text("来源表。", "A table of the datasource."),
    "ODS": Text(
        "来源 {inputs} 的行，只做改名和类型转换。",
        "The rows of {inputs} as they are stored; names and types are adapted.",
    ),
    "DWD": Text("清洗或关联后的明细，来自 {inputs}。", "Rows cleaned or joined, of {inputs}."),
    "DWS": Text("按粒度汇总，来自 {inputs}。", "Figures by the grain, of {inputs}."),
    "ADS": Text("可直接使用的结果，来自 {inputs}。", "Results ready for use, of {inputs}."),
}
