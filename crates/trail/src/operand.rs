//! The workloads that an operator runs: they export where it exports, and continue its traces.
//!
//! What goes into a pod template must not change from one reconcile to the next, as every change rolls out the pods. So a template gets where to
//! export and who it is ([`equip`]), and never a context. A pod that is made once and never applied again (a bare Pod, the template of a Job) may have a context,
//! too ([`equip_once`]), which the program finds again with [`inherited`].
//! A workload that runs longer finds contexts on the objects that it watches: [`Trail::follow`](crate::Trail::follow).
//!
//! Never passed on: `OTEL_EXPORTER_OTLP_HEADERS`, as it may hold credentials, which do not belong into a pod template; certificates, as the file may not be there.

use k8s_openapi::api::core::v1::{EnvVar, EnvVarSource, ObjectFieldSelector, PodSpec};
use opentelemetry::{
    Context,
    trace::{SpanContext, TraceContextExt as _},
};

use crate::context;

/// Settings of this process that hold for what it runs, too.
const PASSED_ON: [&str; 14] = [
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
    "OTEL_EXPORTER_OTLP_PROTOCOL",
    "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL",
    "OTEL_EXPORTER_OTLP_INSECURE",
    "OTEL_EXPORTER_OTLP_COMPRESSION",
    "OTEL_EXPORTER_OTLP_TIMEOUT",
    "OTEL_TRACES_EXPORTER",
    "OTEL_TRACES_SAMPLER",
    "OTEL_TRACES_SAMPLER_ARG",
    "OTEL_SDK_DISABLED",
    "OTEL_PROPAGATORS",
    "OTEL_BSP_SCHEDULE_DELAY",
    "OTEL_BSP_MAX_QUEUE_SIZE",
];

/// Who a pod is, by the downward API.
const IDENTITY: [(&str, &str); 3] =
    [("POD_NAME", "metadata.name"), ("POD_NAMESPACE", "metadata.namespace"), ("NODE_NAME", "spec.nodeName")];

/// The variables that a workload of this name gets. They are the same in every run of this process.
#[must_use]
pub fn environment(service: &str) -> Vec<EnvVar> {
    variables(service, |name| std::env::var(name).ok())
}

/// Gives every container of a pod template what it does not have yet: where to export, and who it is.
pub fn equip(pod: &mut PodSpec, service: &str) {
    add(pod, &environment(service));
}

/// The same for a pod that is made once, with the current context, too. Not for a template that is applied again: its pods would be rolled out.
pub fn equip_once(pod: &mut PodSpec, service: &str) {
    let mut variables = environment(service);
    variables.extend(Context::map_current(|current| current_variables(current.span().span_context())));
    add(pod, &variables);
}

/// The context that this process was started with, from `TRACEPARENT` and `TRACESTATE`.
#[must_use]
pub fn inherited() -> Option<SpanContext> {
    let state = std::env::var("TRACESTATE").ok();
    context::parse(&std::env::var("TRACEPARENT").ok()?, state.as_deref())
}

fn variables(service: &str, own: impl Fn(&str) -> Option<String>) -> Vec<EnvVar> {
    let mut variables: Vec<_> = PASSED_ON
        .iter()
        .filter_map(|name| own(name).filter(|value| !value.is_empty()).map(|value| variable(name, value)))
        .collect();
    if variables.iter().any(|variable| variable.name.ends_with("_ENDPOINT")) {
        variables.push(variable("OTEL_SERVICE_NAME", service.to_owned()));
        variables.extend(IDENTITY.iter().map(|(name, path)| field(name, path)));
    }
    variables
}

fn current_variables(context: &SpanContext) -> Vec<EnvVar> {
    if !context.is_valid() {
        return Vec::new();
    }
    let mut variables = vec![variable("TRACEPARENT", context::traceparent(context))];
    variables.extend(context::tracestate(context).map(|state| variable("TRACESTATE", state)));
    variables
}

fn add(pod: &mut PodSpec, variables: &[EnvVar]) {
    for container in pod.init_containers.iter_mut().flatten().chain(&mut pod.containers) {
        let there = container.env.get_or_insert_default();
        for variable in variables {
            if !there.iter().any(|known| known.name == variable.name) {
                there.push(variable.clone());
            }
        }
    }
}

fn variable(name: &str, value: String) -> EnvVar {
    EnvVar { name: name.to_owned(), value: Some(value), ..EnvVar::default() }
}

fn field(name: &str, path: &str) -> EnvVar {
    let field_ref = Some(ObjectFieldSelector { field_path: path.to_owned(), ..ObjectFieldSelector::default() });
    let value_from = Some(EnvVarSource { field_ref, ..EnvVarSource::default() });
    EnvVar { name: name.to_owned(), value_from, ..EnvVar::default() }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Container;

    use super::*;

    fn own(name: &str) -> Option<String> {
        match name {
            "OTEL_EXPORTER_OTLP_ENDPOINT" => Some("http://collector:4317".to_owned()),
            "OTEL_EXPORTER_OTLP_HEADERS" => Some("authorization=secret".to_owned()),
            "OTEL_TRACES_SAMPLER" => Some(String::new()),
            _ => None,
        }
    }

    #[test]
    fn a_workload_exports_where_its_operator_does_and_gets_no_secret() {
        let variables = variables("scheduler", own);
        let names: Vec<_> = variables.iter().map(|variable| variable.name.as_str()).collect();
        assert_eq!(
            names,
            ["OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_SERVICE_NAME", "POD_NAME", "POD_NAMESPACE", "NODE_NAME"]
        );
        assert!(super::variables("scheduler", |_| None).is_empty());
    }

    #[test]
    fn what_a_container_says_itself_stays() {
        let mine = variable("OTEL_SERVICE_NAME", "mine".to_owned());
        let container = Container { env: Some(vec![mine.clone()]), ..Container::default() };
        let mut pod = PodSpec { containers: vec![container, Container::default()], ..PodSpec::default() };
        add(&mut pod, &variables("scheduler", own));
        let named = |at: usize| pod.containers[at].env.clone().unwrap().into_iter().find(|it| it.name == mine.name);
        assert_eq!(named(0).unwrap().value.as_deref(), Some("mine"));
        assert_eq!(named(1).unwrap().value.as_deref(), Some("scheduler"));
    }

    #[test]
    fn only_a_pod_that_is_made_once_gets_a_context() {
        let context = context::parse("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", Some("a=1")).unwrap();
        let names: Vec<_> = current_variables(&context).into_iter().map(|variable| variable.name).collect();
        assert_eq!(names, ["TRACEPARENT", "TRACESTATE"]);
        assert!(current_variables(&SpanContext::NONE).is_empty());
        assert!(environment("a").iter().all(|variable| variable.name != "TRACEPARENT"));
    }
}
