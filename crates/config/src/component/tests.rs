use std::collections::BTreeSet;

use super::ComponentKind;
use crate::model::{ConnectorConfig, ExporterConfig, ExtensionConfig, ProcessorConfig, ReceiverConfig};

fn check_names<T: ComponentKind>() {
    let names: Vec<&str> = T::ROWS.iter().flat_map(|row| row.component_type.names).copied().collect();
    let unique: BTreeSet<&str> = names.iter().copied().collect();
    assert_eq!(names.len(), unique.len(), "a name of {} stands twice in {names:?}", T::SECTION);
    let foreign: BTreeSet<&str> = T::FOREIGN_NAMES.split_whitespace().collect();
    assert!(foreign.is_disjoint(&unique), "{:?}", foreign.intersection(&unique).collect::<Vec<_>>());
}

#[test]
fn component_names_are_unique_and_not_foreign() {
    check_names::<ReceiverConfig>();
    check_names::<ProcessorConfig>();
    check_names::<ExporterConfig>();
    check_names::<ConnectorConfig>();
    check_names::<ExtensionConfig>();
}

#[test]
fn every_component_states_its_names_and_its_feature() {
    let tables = [
        ReceiverConfig::TYPES,
        ProcessorConfig::TYPES,
        ExporterConfig::TYPES,
        ConnectorConfig::TYPES,
        ExtensionConfig::TYPES,
    ];
    for component in tables.into_iter().flatten() {
        assert!(!component.name().is_empty() && !component.feature.is_empty(), "{component:?}");
        assert_eq!(component.aliases().len() + 1, component.names.len());
    }
}
