"""The whole JSON answers of the endpoints, by the names that generated clients know."""

from typing import Annotated

from pydantic import Field

from api.models.analysis_models import AnalysisModel
from api.models.asking_models import (
    AnswerModel,
    AskedUserModel,
    CompletionsModel,
    ExamplesModel,
    RunModel,
)
from api.models.conversation_models import (
    ClearedModel,
    ConversationListModel,
    ConversationPageModel,
    DeletedModel,
    RenamedModel,
)
from api.models.error_models import ErrorModel
from api.models.etl_models import ArtefactFilesModel, EtlAnswerModel, EtlAskedUserModel
from api.models.file_models import DeletedFileModel, FileDraftModel, FileListModel, FileModel
from api.models.learning_models import (
    ExampleListModel,
    ExampleModel,
    ImportedModel,
    LearntModel,
    LessonListModel,
    LessonModel,
)
from api.models.lineage_models import ImpactModel, LineageModel
from api.models.model_base import EnvelopeOf, ReplyModel
from api.models.schema_models import (
    DescribedTableModel,
    ReloadedModel,
    SchemaSearchModel,
    TablePageModel,
)
from api.models.semantic_models import (
    ProposedModel,
    SemanticFileModel,
    SemanticProposalListModel,
)
from api.models.service_models import (
    DatabaseListModel,
    LoggedOutModel,
    MeModel,
    ReadyModel,
    StoppingModel,
)
from api.models.sql_models import SqlResultModel, VerdictModel

_Answered = Annotated[AnswerModel | AskedUserModel | EtlAnswerModel, Field(discriminator="type")]
_Drafted = Annotated[EtlAnswerModel | EtlAskedUserModel, Field(discriminator="type")]
_Kept = Annotated[FileModel | FileDraftModel, Field(discriminator="status")]


class AnswerEnvelope(EnvelopeOf[_Answered]):
    pass


class EtlEnvelope(EnvelopeOf[_Drafted]):
    pass


class ArtefactFilesEnvelope(EnvelopeOf[ArtefactFilesModel]):
    pass


class ErrorEnvelope(EnvelopeOf[ErrorModel]):
    pass


class ReadyEnvelope(EnvelopeOf[ReadyModel]):
    pass


class UnreadyEnvelope(EnvelopeOf[ReadyModel | StoppingModel]):
    pass


class RunEnvelope(EnvelopeOf[RunModel]):
    pass


class ExamplesEnvelope(EnvelopeOf[ExamplesModel]):
    pass


class CompletionsEnvelope(EnvelopeOf[CompletionsModel]):
    pass


class SchemaSearchEnvelope(EnvelopeOf[SchemaSearchModel]):
    pass


class ReloadedEnvelope(EnvelopeOf[ReloadedModel]):
    pass


class SemanticFileEnvelope(EnvelopeOf[SemanticFileModel]):
    pass


class SemanticProposalListEnvelope(EnvelopeOf[SemanticProposalListModel]):
    pass


class ProposedEnvelope(EnvelopeOf[ProposedModel]):
    pass


class LineageEnvelope(EnvelopeOf[LineageModel]):
    pass


class ImpactEnvelope(EnvelopeOf[ImpactModel]):
    pass


class TablePageEnvelope(EnvelopeOf[TablePageModel]):
    pass


class DescribedTableEnvelope(EnvelopeOf[DescribedTableModel]):
    pass


class FeedbackEnvelope(EnvelopeOf[LearntModel]):
    pass


class OneExampleModel(ReplyModel):
    example: ExampleModel


class ExampleEnvelope(EnvelopeOf[OneExampleModel]):
    pass


class ExampleListEnvelope(EnvelopeOf[ExampleListModel]):
    pass


class OneLessonModel(ReplyModel):
    lesson: LessonModel


class LessonEnvelope(EnvelopeOf[OneLessonModel]):
    pass


class LessonListEnvelope(EnvelopeOf[LessonListModel]):
    pass


class ImportedEnvelope(EnvelopeOf[ImportedModel]):
    pass


class DatabaseListEnvelope(EnvelopeOf[DatabaseListModel]):
    pass


class FileDraftEnvelope(EnvelopeOf[FileDraftModel]):
    pass


class FileEnvelope(EnvelopeOf[FileModel]):
    pass


class FileOrDraftEnvelope(EnvelopeOf[_Kept]):
    pass


class FileListEnvelope(EnvelopeOf[FileListModel]):
    pass


class DeletedFileEnvelope(EnvelopeOf[DeletedFileModel]):
    pass


class LoggedOutEnvelope(EnvelopeOf[LoggedOutModel]):
    pass


class MeEnvelope(EnvelopeOf[MeModel]):
    pass


class ConversationListEnvelope(EnvelopeOf[ConversationListModel]):
    pass


class ConversationEnvelope(EnvelopeOf[ConversationPageModel]):
    pass


class DeletedEnvelope(EnvelopeOf[DeletedModel]):
    pass


class RenamedEnvelope(EnvelopeOf[RenamedModel]):
    pass


class ClearedEnvelope(EnvelopeOf[ClearedModel]):
    pass


class VerdictEnvelope(EnvelopeOf[VerdictModel]):
    pass


class SqlResultEnvelope(EnvelopeOf[SqlResultModel]):
    pass


class AnalysisEnvelope(EnvelopeOf[AnalysisModel]):
    pass
