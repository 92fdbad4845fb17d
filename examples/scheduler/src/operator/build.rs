//! Builds the children of a Scheduler. Pure.

use std::collections::BTreeMap;

use k8s_openapi::{
    api::{
        apps::v1::{Deployment, DeploymentSpec, DeploymentStrategy},
        core::v1::{
            Capabilities, ConfigMap, Container, EnvVar, EnvVarSource, ObjectFieldSelector, Pod, PodSpec,
            PodTemplateSpec, ResourceRequirements, SecurityContext,
        },
    },
    apimachinery::pkg::{
        api::resource::Quantity,
        apis::meta::v1::{LabelSelector, ObjectMeta},
    },
};
use kube::ResourceExt;
use kubewake_release::pull_policy;

use super::FIELD_MANAGER;
use crate::{
    api::Scheduler,
    configuration::{CONFIGURATION_KEY, ConfigurationDocument, ConfigurationProblem},
};

/// The label of children with the name of their Scheduler.
const SCHEDULER_LABEL: &str = "demo.kubewake.io/scheduler";
/// The label of a probe pod with the revision of its configuration.
const REVISION_LABEL: &str = "demo.kubewake.io/revision";
/// Longer names leave no room for the suffixes of derived names.
const MAX_NAME_LENGTH: usize = 40;

#[derive(Clone, Debug)]
pub struct OperandSettings {
    /// The default image of schedulers.
    pub image: String,
    /// The command before the arguments, for a program with further subcommands.
    pub command: Vec<String>,
    pub args: Vec<String>,
    pub service_account: String,
    /// Variables for telemetry. They must be the same for each reconcile; a change restarts schedulers.
    pub telemetry_env: Vec<EnvVar>,
}

/// The configuration of a Scheduler, or all its problems.
pub fn build_document(scheduler: &Scheduler) -> Result<ConfigurationDocument, Vec<ConfigurationProblem>> {
    let document = ConfigurationDocument::from_spec(&scheduler.spec);
    let problems = document.resolve().err().unwrap_or_default();
    let mut problems: Vec<ConfigurationProblem> =
        problems.iter().map(|problem| problem.prefixed_with("spec")).collect();
    if scheduler.scheduler_name() == "default-scheduler" {
        problems.push(ConfigurationProblem::new(
            "spec.schedulerName",
            "default-scheduler is the name of the cluster's own scheduler: choose another name",
        ));
    }
    if scheduler.name_any().len() > MAX_NAME_LENGTH {
        let what = format!("the name has more than {MAX_NAME_LENGTH} characters, so names of pods would be too long");
        problems.push(ConfigurationProblem::new("metadata.name", what));
    }
    if problems.is_empty() { Ok(document) } else { Err(problems) }
}

/// The ConfigMap with the configuration.
pub fn build_config_map(
    scheduler: &Scheduler,
    document: &ConfigurationDocument,
) -> Result<ConfigMap, serde_json::Error> {
    Ok(ConfigMap {
        metadata: metadata(scheduler, &config_map_name(scheduler)),
        data: Some(BTreeMap::from([(CONFIGURATION_KEY.to_owned(), document.to_json()?)])),
        ..ConfigMap::default()
    })
}

fn config_map_name(scheduler: &Scheduler) -> String {
    format!("{}-configuration", scheduler.name_any())
}

/// The Deployment of the scheduler. It does not depend on the plugins, so a new configuration restarts nothing.
pub fn build_deployment(scheduler: &Scheduler, operand: &OperandSettings) -> Deployment {
    let labels = labels(scheduler);
    let template = PodTemplateSpec {
        metadata: Some(ObjectMeta { labels: Some(labels), ..ObjectMeta::default() }),
        spec: Some(PodSpec {
            service_account_name: Some(operand.service_account.clone()),
            containers: vec![build_container(scheduler, operand)],
            ..PodSpec::default()
        }),
    };
    let spec = DeploymentSpec {
        replicas: Some(1),
        // Two schedulers at once would assign the same capacity twice.
        strategy: Some(DeploymentStrategy { type_: Some("Recreate".to_owned()), ..DeploymentStrategy::default() }),
        selector: LabelSelector { match_labels: Some(selector(scheduler)), ..LabelSelector::default() },
        template,
        ..DeploymentSpec::default()
    };
    Deployment { metadata: metadata(scheduler, &scheduler.name_any()), spec: Some(spec), status: None }
}

/// A small pod that probes a configuration. It does nothing but get a node.
pub fn build_probe_pod(scheduler: &Scheduler, operand: &OperandSettings, revision: &str) -> Pod {
    let command = operand.command.iter().cloned().chain(["crds".to_owned()]).collect();
    let Container { image, image_pull_policy, security_context, .. } = build_container(scheduler, operand);
    let requests = BTreeMap::from([("cpu", "10m"), ("memory", "16Mi")]);
    let requests = requests.into_iter().map(|(name, amount)| (name.to_owned(), Quantity(amount.to_owned()))).collect();
    let container = Container {
        name: "probe".to_owned(),
        image,
        image_pull_policy,
        args: Some(command),
        resources: Some(ResourceRequirements { requests: Some(requests), ..ResourceRequirements::default() }),
        security_context,
        ..Container::default()
    };
    let mut metadata = metadata(scheduler, &probe_name(scheduler));
    metadata.labels = Some(BTreeMap::from([(REVISION_LABEL.to_owned(), revision.to_owned())]));
    let spec = PodSpec {
        scheduler_name: Some(scheduler.scheduler_name()),
        containers: vec![container],
        restart_policy: Some("Never".to_owned()),
        termination_grace_period_seconds: Some(1),
        automount_service_account_token: Some(false),
        ..PodSpec::default()
    };
    Pod { metadata, spec: Some(spec), status: None }
}

/// There is one probe at a time.
pub fn probe_name(scheduler: &Scheduler) -> String {
    format!("{}-probe", scheduler.name_any())
}

/// Whether the pod probes this revision.
pub fn probes_revision(pod: &Pod, revision: &str) -> bool {
    pod.labels().get(REVISION_LABEL).is_some_and(|label| label == revision)
}

fn build_container(scheduler: &Scheduler, operand: &OperandSettings) -> Container {
    let own = ["schedule", "--scheduler", &scheduler.name_any(), "--name", &scheduler.scheduler_name()];
    let configuration = ["--config-map".to_owned(), config_map_name(scheduler)];
    let args = own.map(str::to_owned).into_iter().chain(configuration).chain(operand.args.iter().cloned());
    let args = operand.command.iter().cloned().chain(args).collect();
    let env = [("POD_NAME", "metadata.name"), ("POD_NAMESPACE", "metadata.namespace"), ("NODE_NAME", "spec.nodeName")];
    let mut env: Vec<EnvVar> = env.map(|(name, path)| env_from_field(name, path)).into();
    let more = operand.telemetry_env.iter().filter(|more| env.iter().all(|own| own.name != more.name));
    env.extend(more.cloned().collect::<Vec<_>>());
    let amounts = |amounts: &[(&str, &str)]| {
        Some(amounts.iter().map(|(name, amount)| ((*name).to_owned(), Quantity((*amount).to_owned()))).collect())
    };
    let image = scheduler.spec.image.as_ref().unwrap_or(&operand.image);
    Container {
        name: "scheduler".to_owned(),
        image: Some(image.clone()),
        // Explicit: with apply, a policy that the API server defaulted for one image stays when the image
        // changes.
        image_pull_policy: Some(pull_policy(image).to_owned()),
        args: Some(args),
        env: Some(env),
        resources: Some(ResourceRequirements {
            requests: amounts(&[("cpu", "10m"), ("memory", "32Mi")]),
            limits: amounts(&[("memory", "128Mi")]),
            ..ResourceRequirements::default()
        }),
        security_context: Some(SecurityContext {
            allow_privilege_escalation: Some(false),
            capabilities: Some(Capabilities { drop: Some(vec!["ALL".to_owned()]), ..Capabilities::default() }),
            read_only_root_filesystem: Some(true),
            run_as_non_root: Some(true),
            // The numeric user of the image: a kubelet cannot tell whether a user name means root.
            run_as_user: Some(65532),
            ..SecurityContext::default()
        }),
        ..Container::default()
    }
}

fn env_from_field(name: &str, path: &str) -> EnvVar {
    let field = ObjectFieldSelector { field_path: path.to_owned(), ..ObjectFieldSelector::default() };
    let source = EnvVarSource { field_ref: Some(field), ..EnvVarSource::default() };
    EnvVar { name: name.to_owned(), value_from: Some(source), ..EnvVar::default() }
}

fn metadata(scheduler: &Scheduler, name: &str) -> ObjectMeta {
    ObjectMeta {
        name: Some(name.to_owned()),
        namespace: scheduler.namespace(),
        labels: Some(labels(scheduler)),
        ..ObjectMeta::default()
    }
}

fn labels(scheduler: &Scheduler) -> BTreeMap<String, String> {
    let managed = ("app.kubernetes.io/managed-by".to_owned(), FIELD_MANAGER.to_owned());
    selector(scheduler).into_iter().chain([managed]).collect()
}

/// The labels that never change.
fn selector(scheduler: &Scheduler) -> BTreeMap<String, String> {
    BTreeMap::from([(SCHEDULER_LABEL.to_owned(), scheduler.name_any())])
}

#[cfg(test)]
mod tests;
