//! What a Scheduler is made of. Pure.

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

use super::MANAGER;
use crate::{
    api::Scheduler,
    configuration::{Document, KEY, Problem},
};

/// Names the Scheduler of what is made for it.
const LABEL: &str = "demo.kubewake.io/scheduler";
/// Names the configuration that a pod tries.
const REVISION: &str = "demo.kubewake.io/revision";
/// Longer names leave no room for those that are made of them.
const LONGEST_NAME: usize = 40;

/// How schedulers are run.
#[derive(Clone, Debug)]
pub struct Operand {
    /// Their image, unless a Scheduler names another.
    pub image: String,
    /// What comes before the arguments, for a program that is more than a scheduler.
    pub command: Vec<String>,
    /// More arguments.
    pub args: Vec<String>,
    /// Their ServiceAccount.
    pub account: String,
    /// Variables that tell where telemetry goes. They must not change from one moment to the next: that would restart schedulers.
    pub telemetry: Vec<EnvVar>,
}

/// The configuration that it asks for, or all that is wrong with it.
pub fn check(scheduler: &Scheduler) -> Result<Document, Vec<Problem>> {
    let document = Document::of(&scheduler.spec);
    let problems = document.check().err().unwrap_or_default();
    let mut problems: Vec<Problem> = problems.iter().map(|problem| problem.within("spec")).collect();
    if scheduler.scheduler_name() == "default-scheduler" {
        problems.push(Problem::new("spec.schedulerName", "the cluster has a scheduler of this name, choose another"));
    }
    if scheduler.name_any().len() > LONGEST_NAME {
        let what = format!("it is longer than {LONGEST_NAME} letters, which leaves no room for the names of pods");
        problems.push(Problem::new("metadata.name", what));
    }
    if problems.is_empty() { Ok(document) } else { Err(problems) }
}

/// The ConfigMap from which the scheduler takes its configuration.
pub fn config_map(scheduler: &Scheduler, document: &Document) -> Result<ConfigMap, serde_json::Error> {
    Ok(ConfigMap {
        metadata: metadata(scheduler, &config_map_name(scheduler)),
        data: Some(BTreeMap::from([(KEY.to_owned(), document.text()?)])),
        ..ConfigMap::default()
    })
}

fn config_map_name(scheduler: &Scheduler) -> String {
    format!("{}-configuration", scheduler.name_any())
}

/// The Deployment that runs the scheduler. Nothing in it follows from the plugins: a new configuration restarts nothing.
pub fn deployment(scheduler: &Scheduler, operand: &Operand) -> Deployment {
    let labels = labels(scheduler);
    let template = PodTemplateSpec {
        metadata: Some(ObjectMeta { labels: Some(labels), ..ObjectMeta::default() }),
        spec: Some(PodSpec {
            service_account_name: Some(operand.account.clone()),
            containers: vec![container(scheduler, operand)],
            ..PodSpec::default()
        }),
    };
    let spec = DeploymentSpec {
        replicas: Some(1),
        // Two at once would give away the same room.
        strategy: Some(DeploymentStrategy { type_: Some("Recreate".to_owned()), ..DeploymentStrategy::default() }),
        selector: LabelSelector { match_labels: Some(selector(scheduler)), ..LabelSelector::default() },
        template,
        ..DeploymentSpec::default()
    };
    Deployment { metadata: metadata(scheduler, &scheduler.name_any()), spec: Some(spec), status: None }
}

/// A small pod that tries a configuration. It has nothing to do: what matters is that it gets a node.
pub fn probe(scheduler: &Scheduler, operand: &Operand, revision: &str) -> Pod {
    let command = operand.command.iter().cloned().chain(["crds".to_owned()]).collect();
    let Container { image, image_pull_policy, security_context, .. } = container(scheduler, operand);
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
    metadata.labels = Some(BTreeMap::from([(REVISION.to_owned(), revision.to_owned())]));
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

/// There is one at a time.
pub fn probe_name(scheduler: &Scheduler) -> String {
    format!("{}-probe", scheduler.name_any())
}

/// Whether the pod tries this configuration.
pub fn tries(pod: &Pod, revision: &str) -> bool {
    pod.labels().get(REVISION).is_some_and(|label| label == revision)
}

fn container(scheduler: &Scheduler, operand: &Operand) -> Container {
    let own = ["schedule", "--scheduler", &scheduler.name_any(), "--name", &scheduler.scheduler_name()];
    let configuration = ["--config-map".to_owned(), config_map_name(scheduler)];
    let args = own.map(str::to_owned).into_iter().chain(configuration).chain(operand.args.iter().cloned());
    let args = operand.command.iter().cloned().chain(args).collect();
    let env = [("POD_NAME", "metadata.name"), ("POD_NAMESPACE", "metadata.namespace"), ("NODE_NAME", "spec.nodeName")];
    let mut env: Vec<EnvVar> = env.map(|(name, path)| from_field(name, path)).into();
    let more = operand.telemetry.iter().filter(|more| env.iter().all(|own| own.name != more.name));
    env.extend(more.cloned().collect::<Vec<_>>());
    let amounts = |amounts: &[(&str, &str)]| {
        Some(amounts.iter().map(|(name, amount)| ((*name).to_owned(), Quantity((*amount).to_owned()))).collect())
    };
    let image = scheduler.spec.image.as_ref().unwrap_or(&operand.image);
    Container {
        name: "scheduler".to_owned(),
        image: Some(image.clone()),
        // Said, because a policy that the API server chose for one image stays when another one is named.
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
            // The user of the image, by its number: a kubelet cannot tell whether a name is root's.
            run_as_user: Some(65532),
            ..SecurityContext::default()
        }),
        ..Container::default()
    }
}

fn from_field(name: &str, path: &str) -> EnvVar {
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
    let managed = ("app.kubernetes.io/managed-by".to_owned(), MANAGER.to_owned());
    selector(scheduler).into_iter().chain([managed]).collect()
}

/// Those that never change.
fn selector(scheduler: &Scheduler) -> BTreeMap<String, String> {
    BTreeMap::from([(LABEL.to_owned(), scheduler.name_any())])
}

#[cfg(test)]
mod tests;
