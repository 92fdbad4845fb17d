//! Connectors: each is an exporter of some pipelines and a receiver of others.

mod forward;

use kubewake_otlp::Signal;

pub use self::forward::ForwardConnector;
use crate::{
    component::{ConnectorSettings, component_table},
    decode::foreign_names,
};

component_table! {
    pub enum ConnectorConfig: ConnectorSettings {
        section: "connectors",
        noun: "connector",
        foreign_names: foreign_names::CONNECTORS,
    }
    Forward(ForwardConnector) = ["forward"], feature "connector-forward";
}

impl ConnectorConfig {
    /// The signals that it makes of what it receives from a pipeline of this signal.
    pub fn outputs(&self, input: Signal) -> &'static [Signal] {
        self.settings().outputs(input)
    }
}
