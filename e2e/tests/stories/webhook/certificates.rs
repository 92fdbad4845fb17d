//! Certificates and the registration, over time and against all comers.

use kubewake_e2e::wait_until;

use super::*;

impl Stage {
    fn registration(&self) -> Value {
        self.kubectl.json(&format!("mutatingwebhookconfiguration {}", self.name))
    }

    fn bundle(&self) -> String {
        self.registration()["webhooks"][0]["clientConfig"]["caBundle"].as_str().unwrap_or_default().to_owned()
    }
}

#[test]
fn certificates_change_under_load_and_no_call_is_refused() {
    let Some(mut stage) = Stage::start(&["--certificate-lifetime", "24s"]) else { return };
    let first = stage.bundle();
    let mut number = 0;
    let mut both = false;
    // One life is over once nothing of the first authority is left.
    loop {
        let bundle = stage.bundle();
        both |= bundle != first && bundle.len() > first.len();
        stage.kubectl.run_ok(&format!("create configmap load-{number}"));
        number += 1;
        if both && bundle.len() <= first.len() {
            break;
        }
    }
    let all = stage.kubectl.json("configmaps");
    let all = all["items"].as_array().unwrap().iter();
    let named = all.filter(|map| map["metadata"]["name"].as_str().unwrap_or_default().starts_with("load-"));
    let (stamped, bare): (Vec<_>, Vec<_>) = named.partition(|map| !map["metadata"]["annotations"][PARENT].is_null());
    assert_eq!(stamped.len() + bare.len(), number);
    if stage.kubectl.cluster().is_embedded() {
        let said = stage.kubectl.process().stderr();
        let refused: Vec<_> = said.lines().filter(|line| line.contains("failed calling webhook")).collect();
        // A machine that is busy may be slower than two seconds, which is no fault of certificates.
        assert!(refused.iter().all(|line| line.contains("deadline exceeded")), "{refused:#?}");
        assert_eq!(bare.len(), refused.len(), "{refused:#?}");
    }
    assert!(stage.webhook().is_running());
}

#[test]
fn the_registration_is_written_only_when_it_must_and_mended_when_somebody_changes_it() {
    let Some(mut stage) = Stage::start(&[]) else { return };
    let version = |stage: &Stage| stage.registration()["metadata"]["resourceVersion"].clone();
    let before = version(&stage);
    let good = stage.registration()["webhooks"].clone();
    assert_eq!((&good[0]["failurePolicy"], &good[0]["timeoutSeconds"]), (&"Ignore".into(), &2.into()));

    let name = stage.name.clone();
    let patch = r#"--type=json -p [{"op":"replace","path":"/webhooks/0/failurePolicy","value":"Fail"}]"#;
    stage.kubectl.run_ok(&format!("patch mutatingwebhookconfiguration {name} {patch}"));
    wait_until("the webhook restores its registration", || stage.registration()["webhooks"] == good);
    assert_ne!(version(&stage), before);
    stage.kubectl.run_ok(&format!("delete mutatingwebhookconfiguration {name}"));
    wait_until("the webhook registers itself again", || {
        stage.kubectl.exists(&format!("mutatingwebhookconfiguration {name}"))
            && stage.registration()["webhooks"] == good
    });
    stage.webhook().signal("TERM");
    assert!(stage.webhook().wait_for_exit().success());
    assert!(stage.kubectl.exists(&format!("mutatingwebhookconfiguration {name}")), "it stays for the next");
}

#[test]
fn a_webhook_that_goes_for_good_takes_its_registration_along() {
    let Some(mut stage) = Stage::start(&["--unregister-on-exit"]) else { return };
    stage.webhook().signal("TERM");
    assert!(stage.webhook().wait_for_exit().success());
    assert!(!stage.kubectl.exists(&format!("mutatingwebhookconfiguration {}", stage.name)));
}
