//! `elasticsearch`: logs and traces to the bulk API of Elasticsearch. [`bulk_index`](super::bulk_index) has the work.

use kubewake_config::model::ElasticsearchExporter;

use super::bulk_index;
use crate::components::{BuildError, ExporterContext, PreparedExporter};

pub(crate) fn prepare(
    settings: &ElasticsearchExporter,
    context: &ExporterContext<'_>,
) -> Result<PreparedExporter, BuildError> {
    bulk_index::prepare(&settings.bulk, context)
}
