//! `opensearch`: logs and traces to the bulk API of OpenSearch. [`bulk_index`](super::bulk_index) has the work.

use kubewake_config::model::OpensearchExporter;

use super::bulk_index;
use crate::components::{BuildError, ExporterContext, PreparedExporter};

pub(crate) fn prepare(
    settings: &OpensearchExporter,
    context: &ExporterContext<'_>,
) -> Result<PreparedExporter, BuildError> {
    bulk_index::prepare(&settings.bulk, context)
}
