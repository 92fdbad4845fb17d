//! The settings of the collectors, from the Telemetry `default`.
//!
//! *Guaranteed*: while the Telemetry is invalid the last valid settings stay in force; if it never was valid, its
//! valid part is. Only the watch of the Telemetry writes them.

use std::sync::Arc;

use kube::{ResourceExt as _, runtime::reflector::Store};
use kubewake_api::{CollectorSettings, v1alpha1::Telemetry};
use tokio::sync::watch;

/// The Telemetry that counts; the API refuses other names.
pub fn default_telemetry(telemetries: &Store<Telemetry>) -> Option<Arc<Telemetry>> {
    telemetries.state().into_iter().find(|telemetry| telemetry.name_any() == "default")
}

/// The settings in force, for readers.
#[derive(Clone, Debug)]
pub struct SettingsCache {
    namespace: String,
    current: watch::Receiver<Option<CollectorSettings>>,
}

/// The right to change a [`SettingsCache`], for the watch of the Telemetry.
#[derive(Debug)]
pub struct SettingsWriter {
    namespace: String,
    current: watch::Sender<Option<CollectorSettings>>,
}

impl SettingsCache {
    /// The settings in force; defaults until the Telemetry has been listed.
    pub fn current(&self) -> CollectorSettings {
        self.current.borrow().clone().unwrap_or_else(|| CollectorSettings::new(&self.namespace))
    }
}

impl SettingsWriter {
    pub fn new(namespace: &str) -> Self {
        Self { namespace: namespace.to_owned(), current: watch::Sender::new(None) }
    }

    pub fn reader(&self) -> SettingsCache {
        SettingsCache { namespace: self.namespace.clone(), current: self.current.subscribe() }
    }

    /// Puts the settings of a Telemetry in force, or the defaults if there is none.
    pub fn update(&self, telemetry: Option<&Telemetry>) {
        let Some(telemetry) = telemetry else {
            self.current.send_replace(Some(CollectorSettings::new(&self.namespace)));
            return;
        };
        let (settings, problems) = CollectorSettings::from_spec_lenient(&telemetry.spec, &self.namespace);
        self.current.send_if_modified(|current| {
            // The status of the Telemetry reports its problems.
            let stays = !problems.is_empty() && current.is_some();
            if !stays {
                *current = Some(settings);
            }
            !stays
        });
    }
}

#[cfg(test)]
mod tests {
    use kubewake_api::Signal;
    use serde_json::{Value, json};

    use super::*;

    fn telemetry(spec: Value) -> Telemetry {
        Telemetry::new("default", serde_json::from_value(spec).unwrap())
    }

    #[test]
    fn invalid_telemetry_keeps_the_settings_before_it() {
        let valid = telemetry(json!({"slots": {"traces": 7}}));
        let invalid = telemetry(json!({"slots": {"traces": 9}, "image": "Not An Image"}));
        let (_, problems) = CollectorSettings::from_spec_lenient(&invalid.spec, "ns");
        assert!(!problems.is_empty());
        let writer = SettingsWriter::new("ns");
        let reader = writer.reader();
        let defaults = CollectorSettings::new("ns");
        assert_eq!(reader.current(), defaults, "nothing has been listed");
        writer.update(Some(&invalid));
        assert_eq!(reader.current(), CollectorSettings::from_spec_lenient(&invalid.spec, "ns").0, "its valid part");
        writer.update(Some(&valid));
        assert_eq!(reader.current().slots(Signal::Traces), 7);
        writer.update(Some(&invalid));
        assert_eq!(reader.current().slots(Signal::Traces), 7, "the last valid settings stay");
        writer.update(None);
        assert_eq!(reader.current(), defaults);
    }
}
