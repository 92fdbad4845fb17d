//! A program that is not ours, three times behind a Service, with its files from a ConfigMap.

use std::collections::BTreeSet;

use kubewake_e2e::wait_until;

use super::{page, service, web};

#[test]
fn a_service_reaches_every_replica_and_they_serve_new_content() {
    let Some(kubectl) = web() else { return };
    let address = service(&kubectl, "web");
    assert_eq!(page(address).as_deref(), Some("first words"));
    let ips: BTreeSet<String> = kubectl.field("pods", ".items[*].status.podIP").split(' ').map(str::to_owned).collect();
    assert_eq!(ips.len(), 3, "each has an address of its own");
    wait_until("the Service spreads connections over all pods", || {
        page(address);
        let logs = kubectl.run_ok("logs -l app=web --prefix --tail=-1");
        ips.len()
            == logs
                .lines()
                .filter(|line| line.contains("GET /"))
                .filter_map(|line| line.split(' ').next())
                .collect::<BTreeSet<_>>()
                .len()
    });

    kubectl.run_ok("patch configmap content -p {\"data\":{\"index.html\":\"second_words\"}}");
    for ip in &ips {
        let pod = format!("{ip}:8080").parse().unwrap();
        wait_until("the new words are served by every pod", || page(pod).as_deref() == Some("second_words"));
    }
    assert!(
        kubectl
            .field("pods", ".items[*].status.containerStatuses[0].restartCount")
            .split(' ')
            .all(|count| count == "0")
    );
}

#[test]
fn a_pod_that_is_deleted_is_replaced_while_the_service_goes_on() {
    let Some(kubectl) = web() else { return };
    let address = service(&kubectl, "web");
    let victim = kubectl.field("pods", ".items[0].metadata.name");
    kubectl.run_ok(&format!("delete pod {victim}"));
    assert!(!kubectl.exists(&format!("pod {victim}")));
    assert_eq!(page(address).as_deref(), Some("first words"));
    kubectl.run_ok("wait --for=condition=Available deployment/web --timeout=60s");
    wait_until("three pods are ready again", || kubectl.field("deployment web", ".status.readyReplicas") == "3");
    kubectl.run_ok("delete deployment web");
    wait_until("the Service refuses", || page(address).is_none());
    wait_until("no pod is left", || kubectl.run_ok("get pods -o name").is_empty());
}

#[test]
fn it_is_scaled_and_described() {
    let Some(kubectl) = web() else { return };
    let watch = kubectl.follow("get pods -w");
    wait_until("the watch shows the existing pods", || watch.stdout().contains("Running"));
    kubectl.run_ok("scale deployment web --replicas=5");
    kubectl.run_ok("rollout status deployment/web --timeout=60s");
    assert_eq!(kubectl.field("deployment web", ".status.availableReplicas"), "5");
    kubectl.run_ok("scale deployment web --replicas=1");
    wait_until("four are gone", || kubectl.run_ok("get pods -o name").lines().count() == 1);
    wait_until("a watcher saw them come and go", || {
        let seen = watch.stdout();
        (seen.contains("ContainerCreating") || seen.contains("Pending"))
            && seen.contains("Running")
            && seen.contains("Terminating")
    });
    let told = kubectl.run_ok("describe deployment web");
    assert!(told.contains("Scaled up replica set web-") && told.contains("MinimumReplicasAvailable"), "{told}");
    let told = kubectl.run_ok("describe pods -l app=web");
    for words in ["node-1/127.", "Container started", "Successfully assigned", "ContainersReady", "COLOUR:  blue"] {
        assert!(told.contains(words), "{words} in {told}");
    }
    let slices = kubectl.json("endpointslices -l kubernetes.io/service-name=web");
    wait_until("one endpoint is left", || {
        kubectl.json("endpointslices -l kubernetes.io/service-name=web")["items"][0]["endpoints"]
            .as_array()
            .is_some_and(|all| all.len() == 1)
    });
    assert_eq!(slices["items"][0]["ports"][0]["port"], 8080);
}
