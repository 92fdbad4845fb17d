//! Renders the document of the collectors on the nodes.
//!
//! # Guarantees
//!
//! - Pipelines whose lines become the same records share one receiver, so that each line is read once for all of them.
//!   The id of a receiver depends only on how lines become records: when pipelines come and go, or select others, the
//!   receiver stays and with it the positions in the logs.
//! - The receiver reads what any of its pipelines selects. What the others select is narrowed down by their filters.
//! - Logs of the collectors on the nodes are never read: each line of them could cause another one.

use std::collections::{BTreeMap, BTreeSet};

use kubewake_config::{
    CollectorDocument, ComponentId, EncodeError, RegexPattern,
    model::{
        AssociationSource, ExtensionConfig, ExtractFrom, ExtractKey, Field, FieldExtract, FileStorage, FilterProcessor,
        KubernetesAttributesProcessor, PipelineConfig, PodFilter, ProcessorConfig,
    },
};

use super::{
    AGENT_NAME, AGENT_NAMESPACE, CollectorConfigs, ENRICHMENT_PROCESSOR, MEMORY_LIMITER, NODE_NAME_VARIABLE,
    POD_LOG_DIRECTORY, STATE_DIRECTORY, base_document,
    exporter::{self, SecretKeys},
    finish_document, own_processors, pipeline_uid, receiver,
    selection::{self, SenderSelection},
};
use crate::{
    CollectorSettings, ValidPipeline,
    pipeline::{LineSettings, RuntimeLogs},
    v1alpha1::{ContainerSelector, NamespaceSelector},
};

pub(super) const STATE_EXTENSION: &str = "file_storage";
/// More patterns than a collector should compare each path with. Beyond it the receiver reads all containers of the
/// namespaces, and the filters of pipelines drop the others.
const MAX_PATTERNS: usize = 512;

/// A pipeline, and what it reads.
type ReadingPipeline<'a> = (&'a ValidPipeline, &'a RuntimeLogs);

/// Adds the document for these pipelines, and the values that it refers to.
pub(super) fn add_agent(
    configs: &mut CollectorConfigs,
    pipelines: &[&ValidPipeline],
    settings: &CollectorSettings,
) -> Result<(), EncodeError> {
    let mut keys = SecretKeys::default();
    let mut document = base_document(settings);
    let storage = FileStorage { directory: STATE_DIRECTORY.into(), ..FileStorage::default() };
    document.extensions.insert(ComponentId::new(STATE_EXTENSION), ExtensionConfig::FileStorage(storage));
    let runtimes = || pipelines.iter().filter_map(|pipeline| pipeline.runtime.as_ref());
    let fields = selection::pod_fields(runtimes().map(|runtime| &runtime.workloads));
    for runtime in runtimes() {
        let processor = ProcessorConfig::KubernetesAttributes(enrichment(runtime, &fields).into());
        document.processors.insert(enrichment_id(runtime), processor);
    }
    let mut groups = BTreeMap::<LineSettings, Vec<ReadingPipeline<'_>>>::new();
    for pipeline in pipelines {
        if let Some(runtime) = &pipeline.runtime {
            groups.entry(runtime.lines).or_default().push((pipeline, runtime));
        }
    }
    for (lines, group) in groups {
        add_group(&mut document, &mut keys, lines, &group, settings);
    }
    configs.agent = Some(finish_document(document)?);
    configs.agent_secrets = keys.0;
    Ok(())
}

/// Adds the pipelines that share a receiver.
fn add_group(
    document: &mut CollectorDocument,
    keys: &mut SecretKeys,
    lines: LineSettings,
    group: &[ReadingPipeline<'_>],
    settings: &CollectorSettings,
) {
    let patterns = FilePatterns::for_group(group);
    let receiver = ComponentId::new(format!("file_log/{}", group_name(lines)));
    let reading = receiver::file_log(&patterns.include, &patterns.exclude, lines, settings);
    document.receivers.insert(receiver.clone(), reading);
    for (pipeline, runtime) in group {
        let mut processors = vec![ComponentId::new(MEMORY_LIMITER), enrichment_id(runtime)];
        let name = pipeline.component_name();
        for processor in own_processors(pipeline, filter(pipeline, runtime, &patterns)) {
            let id = ComponentId::new(format!("{}/{name}", processor.type_name()));
            document.processors.insert(id.clone(), processor);
            processors.push(id);
        }
        let exporters = vec![exporter::add_exporter(document, keys, pipeline, settings)];
        let receivers = vec![receiver.clone()];
        let uid = pipeline_uid(pipeline);
        let config = PipelineConfig { receivers, processors, exporters, uid, carries: Vec::new() };
        document.service.pipelines.insert(pipeline.pipeline_id(), config);
    }
}

/// The name of the receiver for these settings: `pods`, with words for what differs from the defaults.
fn group_name(lines: LineSettings) -> String {
    let default = LineSettings::default();
    let words = [
        (lines.multiline != default.multiline, "single-lines"),
        (!lines.json, "plain"),
        (lines.json && !lines.message, "whole"),
        (lines.json && !lines.severity, "no-severity"),
        (lines.json && !lines.trace_context, "no-trace-context"),
        (lines.json && lines.keep_original, "original"),
    ];
    let words = words.into_iter().filter(|(is_changed, _)| *is_changed).map(|(_, word)| word);
    ["pods"].into_iter().chain(words).collect::<Vec<_>>().join("-")
}

/// The filter of a pipeline: without names that the patterns of its receiver select already.
fn filter(pipeline: &ValidPipeline, runtime: &RuntimeLogs, patterns: &FilePatterns) -> Option<FilterProcessor> {
    let (every_namespace, every_container) = (NamespaceSelector::default(), ContainerSelector::default());
    let workloads = &runtime.workloads;
    let senders = if patterns.are_exact {
        SenderSelection { namespaces: &every_namespace, containers: &every_container, workloads }
    } else {
        SenderSelection { namespaces: &runtime.namespaces, containers: &runtime.containers, workloads }
    };
    selection::filter_senders(pipeline, &senders)
}

/// The id of the processor that looks up pods: pipelines share it if their records get the same attributes.
fn enrichment_id(runtime: &RuntimeLogs) -> ComponentId {
    ComponentId::new(match (runtime.drop_labels, runtime.keep_annotations) {
        (false, false) => ENRICHMENT_PROCESSOR.to_owned(),
        (false, true) => format!("{ENRICHMENT_PROCESSOR}/annotated"),
        (true, false) => format!("{ENRICHMENT_PROCESSOR}/unlabelled"),
        (true, true) => format!("{ENRICHMENT_PROCESSOR}/annotated-unlabelled"),
    })
}

/// The processor that looks up pods, of its own node alone.
fn enrichment(runtime: &RuntimeLogs, fields: &[Field]) -> KubernetesAttributesProcessor {
    let by = |fields: &[Field]| {
        fields.iter().map(|field| AssociationSource::Attribute(field.name().to_owned())).collect::<Vec<_>>()
    };
    KubernetesAttributesProcessor {
        metadata: fields.to_vec(),
        labels: extract_all("k8s.pod.label", !runtime.drop_labels),
        annotations: extract_all("k8s.pod.annotation", runtime.keep_annotations),
        filter: PodFilter { node_from_env_var: Some(NODE_NAME_VARIABLE.to_owned()), ..PodFilter::default() },
        // The directory of a static pod has another uid than the pod in the API.
        associations: vec![by(&[Field::PodUid]), by(&[Field::NamespaceName, Field::PodName])],
        // Logs wait in their files.
        wait: Some(KubernetesAttributesProcessor::DEFAULT_WAIT),
        ..KubernetesAttributesProcessor::default()
    }
}

/// Extracts all labels or annotations of a pod, to attributes with this prefix.
fn extract_all(prefix: &str, is_wanted: bool) -> Vec<FieldExtract> {
    // The whole key is the group of the expression.
    let pattern = is_wanted.then(|| RegexPattern::new("^(?:(.*))$").ok()).flatten();
    let extract = |pattern| FieldExtract {
        tag: Some(format!("{prefix}.$1")),
        key: ExtractKey::Matching(pattern),
        from: ExtractFrom::Pod,
    };
    pattern.map(extract).into_iter().collect()
}

/// The files that a group of pipelines reads.
#[derive(Debug, PartialEq, Eq)]
struct FilePatterns {
    include: Vec<String>,
    exclude: Vec<String>,
    /// Whether each pipeline of the group selects just these namespaces and containers.
    are_exact: bool,
}

impl FilePatterns {
    fn for_group(group: &[ReadingPipeline<'_>]) -> Self {
        let selections: Vec<&RuntimeLogs> = group.iter().map(|(_, runtime)| *runtime).collect();
        let is_same = |one: &RuntimeLogs, other: &RuntimeLogs| {
            one.namespaces == other.namespaces && one.containers == other.containers
        };
        let all_same = selections.windows(2).all(|pair| matches!(pair, [one, other] if is_same(one, other)));
        let pairs: BTreeSet<(&str, &str)> = selections.iter().flat_map(|runtime| named_pairs(runtime)).collect();
        let (include, fits) = if pairs.len() <= MAX_PATTERNS {
            (log_patterns(pairs), true)
        } else {
            (log_patterns(pairs.into_iter().map(|(namespace, _)| (namespace, "*")).collect()), false)
        };
        let mut exclude = vec![format!("{POD_LOG_DIRECTORY}/{AGENT_NAMESPACE}_{AGENT_NAME}-*_*/*/*.log")];
        let namespaces = all_exclude(&selections, |it| (&it.namespaces.include, &it.namespaces.exclude));
        exclude.extend(namespaces.into_iter().map(|name| format!("{POD_LOG_DIRECTORY}/{name}_*/*/*.log")));
        let containers = all_exclude(&selections, |it| (&it.containers.include, &it.containers.exclude));
        exclude.extend(containers.into_iter().map(|name| format!("{POD_LOG_DIRECTORY}/*/{name}/*.log")));
        Self { include, exclude, are_exact: all_same && fits }
    }
}

/// The pairs of a namespace and a container that a pipeline names; `*` stands for all.
fn named_pairs(runtime: &RuntimeLogs) -> Vec<(&str, &str)> {
    let containers = names_or_all(&runtime.containers.include);
    let namespaces = names_or_all(&runtime.namespaces.include).into_iter();
    namespaces.flat_map(|namespace| containers.iter().map(move |container| (namespace, *container))).collect()
}

fn names_or_all(names: &[String]) -> Vec<&str> {
    if names.is_empty() { vec!["*"] } else { names.iter().map(String::as_str).collect() }
}

/// The patterns for these pairs, without those that others contain.
fn log_patterns(pairs: BTreeSet<(&str, &str)>) -> Vec<String> {
    let contains = |(namespace, container): (&str, &str), wide: (&str, &str)| {
        wide != (namespace, container) && pairs.contains(&wide)
    };
    let is_needed = |pair: &&(&str, &str)| {
        let (namespace, container) = **pair;
        let wider = [("*", "*"), (namespace, "*"), ("*", container)];
        !wider.into_iter().any(|wide| contains((namespace, container), wide))
    };
    let needed = pairs.iter().filter(is_needed);
    needed.map(|(namespace, container)| format!("{POD_LOG_DIRECTORY}/{namespace}_*/{container}/*.log")).collect()
}

/// The names that all of these exclude, and none includes.
fn all_exclude<'a>(
    selections: &[&'a RuntimeLogs],
    lists: impl Fn(&'a RuntimeLogs) -> (&'a Vec<String>, &'a Vec<String>),
) -> BTreeSet<&'a str> {
    let excludes = |selection: &'a RuntimeLogs, name: &str| {
        let (include, exclude) = lists(selection);
        exclude.iter().any(|one| one == name) || !include.is_empty() && !include.iter().any(|one| one == name)
    };
    let named = selections.iter().flat_map(|selection| lists(selection).1).map(String::as_str);
    named.filter(|name| selections.iter().all(|selection| excludes(selection, name))).collect()
}
