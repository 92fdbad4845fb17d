//! Connectors: take data of some pipelines and pass it on to others.
//!
//! To add one, add its folder, its `mod` line and its row here; docs/adding-a-component.md is the recipe.

#[cfg(feature = "connector-forward")]
mod forward;

use kubewake_config::model::ConnectorConfig;

use crate::components::{ConnectorContext, PreparedConnector, component_table};

component_table! {
    fn prepare(ConnectorConfig, ConnectorContext<'_>) -> PreparedConnector;
    "connector-forward", Forward => forward;
}
