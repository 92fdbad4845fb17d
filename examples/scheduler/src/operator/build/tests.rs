use serde_json::{Value, json};

use super::*;

fn scheduler(name: &str, spec: Value) -> Scheduler {
    let mut scheduler = Scheduler::new(name, serde_json::from_value(spec).unwrap());
    scheduler.metadata.namespace = Some("here".to_owned());
    scheduler
}

fn operand() -> OperandSettings {
    let telemetry = vec![EnvVar { name: "OTEL_X".to_owned(), value: Some("y".to_owned()), ..EnvVar::default() }];
    let command = vec!["demo".to_owned()];
    let args = vec!["--mode=links".to_owned()];
    OperandSettings {
        image: "ours".to_owned(),
        command,
        args,
        service_account: "scheduler".to_owned(),
        telemetry_env: telemetry,
    }
}

#[test]
fn a_new_configuration_changes_the_config_map_and_not_the_deployment() {
    let old = scheduler("demo", json!({ "scores": [{ "name": "LeastAllocated" }] }));
    let new = scheduler("demo", json!({ "scores": [{ "name": "MostAllocated" }] }));
    let map = |scheduler: &Scheduler| build_config_map(scheduler, &build_document(scheduler).ok().unwrap()).unwrap();
    assert_ne!(map(&old).data, map(&new).data);
    assert_eq!(map(&old).metadata, map(&new).metadata);
    assert_eq!(build_deployment(&old, &operand()), build_deployment(&new, &operand()));
    assert!(ConfigurationDocument::parse(&map(&old).data.unwrap()[CONFIGURATION_KEY]).is_ok());
}

#[test]
fn the_scheduler_is_told_who_it_is() {
    let scheduler = scheduler("demo", json!({ "schedulerName": "mine", "image": "other" }));
    let spec = build_deployment(&scheduler, &operand()).spec.unwrap().template.spec.unwrap();
    assert_eq!(spec.service_account_name.as_deref(), Some("scheduler"));
    let container = &spec.containers[0];
    assert_eq!(container.image.as_deref(), Some("other"));
    let args = "demo schedule --scheduler demo --name mine --config-map demo-configuration --mode=links";
    assert_eq!(container.args.as_deref().unwrap().join(" "), args);
    let names: Vec<&str> = container.env.iter().flatten().map(|env| env.name.as_str()).collect();
    assert_eq!(names, ["POD_NAME", "POD_NAMESPACE", "NODE_NAME", "OTEL_X"]);
}

#[test]
fn all_problems_are_found_with_their_paths() {
    let wrong = json!({ "schedulerName": "default-scheduler", "filters": ["Magic"] });
    let problems = build_document(&scheduler(&"x".repeat(41), wrong)).err().unwrap();
    let paths: Vec<String> = problems.iter().map(|it| it.to_string().split(':').next().unwrap().to_owned()).collect();
    assert_eq!(paths, ["spec.filters[0]", "spec.schedulerName", "metadata.name"]);
}
