//! Candidates against the embedded API server.

use std::sync::{Arc, Mutex};

use http::{Method, Request};
use kube::client::Body;
use kubewake_apiserver::server::{ApiServer, Options};

use super::*;

/// Far more than anything takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

fn terms(identity: &str) -> Terms {
    Terms { identity: identity.to_owned(), seconds: 600 }
}

/// A client whose patches wait until they may go, and the methods of all that it sent.
fn held(client: &Client, gate: &watch::Receiver<bool>) -> (Client, Arc<Mutex<Vec<Method>>>) {
    let sent = Arc::<Mutex<Vec<Method>>>::default();
    let (inner, gate, log) = (client.clone(), gate.clone(), Arc::clone(&sent));
    let send = move |request: Request<Body>| {
        let (inner, mut gate, method) = (inner.clone(), gate.clone(), request.method().clone());
        log.lock().unwrap().push(method.clone());
        async move {
            if method == Method::PATCH {
                gate.wait_for(|is_open| *is_open).await.unwrap();
            }
            inner.send(request).await
        }
    };
    (Client::new(tower::service_fn(send), "default"), sent)
}

async fn until(mut holds: impl FnMut() -> bool) {
    let wait = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(PATIENCE, wait).await.expect("it never is so");
}

#[tokio::test]
async fn of_two_that_take_a_free_lease_at_once_one_gets_it() {
    let server = ApiServer::start(Options::default()).await.unwrap();
    let (client, gate) = (server.client().unwrap(), watch::Sender::new(false));
    let (slow, sent) = held(&client, &gate.subscribe());
    let second = Candidate::stand(&slow, "default", &terms("second")).await.unwrap();
    let is_patch = |method: &Method| method == Method::PATCH;
    let after = || sent.lock().unwrap().iter().skip_while(|method| !is_patch(method)).count();
    until(|| after() == 1).await;

    let mut first = Candidate::stand(&client, "default", &terms("first")).await.unwrap();
    assert!(timeout(PATIENCE, first.elected()).await.unwrap());
    gate.send_replace(true);
    until(|| after() > 1).await;
    let lease = Api::<Lease>::namespaced(client, "default").get(names::LEASE).await.unwrap();
    assert_eq!(lease.spec.unwrap().holder_identity.as_deref(), Some("first"));
    assert!(*first.state.borrow() && !*second.state.borrow());
}

#[tokio::test]
async fn who_resigns_lets_another_lead_at_once() {
    let server = ApiServer::start(Options::default()).await.unwrap();
    let client = server.client().unwrap();
    let mut first = Candidate::stand(&client, "default", &terms("first")).await.unwrap();
    assert!(timeout(PATIENCE, first.elected()).await.unwrap());
    first.resign().await;
    let mut second = Candidate::stand(&client, "default", &terms("second")).await.unwrap();
    assert!(timeout(PATIENCE, second.elected()).await.expect("ten minutes are not over"));
}

#[tokio::test]
async fn who_waits_sees_that_the_lease_was_given_back() {
    let server = ApiServer::start(Options::default()).await.unwrap();
    let client = server.client().unwrap();
    let mut first = Candidate::stand(&client, "default", &terms("first")).await.unwrap();
    assert!(timeout(PATIENCE, first.elected()).await.unwrap());
    let mut second = Candidate::stand(&client, "default", &terms("second")).await.unwrap();
    let is_elected = tokio::select! {
        is_elected = timeout(PATIENCE, second.elected()) => is_elected.expect("ten minutes are not over"),
        () = async { first.resign().await; std::future::pending().await } => unreachable!(),
    };
    second.resign().await;
    let mut anew = Candidate::stand(&client, "default", &terms("second")).await.unwrap();
    assert!(is_elected || timeout(PATIENCE, anew.elected()).await.expect("ten minutes are not over"));
}
