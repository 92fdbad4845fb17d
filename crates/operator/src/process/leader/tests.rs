//! Candidates against a model of an API server, on a paused clock: a test of ten minutes takes no time, and
//! each second is deterministic. The last test runs against the embedded API server.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use http::Method;
use k8s_openapi::api::coordination::v1::LeaseSpec;
use kubewake_apiserver::server::{ApiServer, Options};
use tokio::task::JoinHandle;

use self::model::{Line, Model, Way};
use super::*;

mod model;

const TERM: Duration = Duration::from_secs(15);
/// Longer than any delay between two attempts.
const LOOKS: Duration = Duration::from_millis(2501);
const SECOND: Duration = Duration::from_secs(1);

fn terms(identity: &str) -> LeaseConfig {
    LeaseConfig { identity: identity.to_owned(), seconds: 15 }
}

fn candidate(model: &Model, line: &Line, identity: &str) -> Candidate {
    Candidate::new(&model.client(line), "default", &terms(identity))
}

async fn leader(model: &Model, line: &Line, identity: &str) -> Candidate {
    let mut leader = candidate(model, line, identity);
    leader.wait_until_elected().await.unwrap();
    leader
}

/// The Lease of a holder that is not there.
fn held_by(identity: &str) -> Lease {
    let spec = LeaseSpec {
        holder_identity: Some(identity.to_owned()),
        lease_duration_seconds: Some(15),
        ..LeaseSpec::default()
    };
    Lease { spec: Some(spec), ..Lease::default() }
}

async fn time<T>(it: impl Future<Output = T>) -> Duration {
    let start = Instant::now();
    it.await;
    start.elapsed()
}

/// Asserts that a future does not end within this time.
async fn goes_on(it: impl Future, period: Duration) {
    assert!(timeout(period, it).await.is_err(), "it does not go on");
}

#[tokio::test(start_paused = true)]
async fn who_is_alone_leads_at_once_and_on() {
    let model = Model::default();
    let mut only = leader(&model, &Line::default(), "only").await;
    assert_eq!(model.log(), [(Method::GET, 404), (Method::POST, 200)]);
    goes_on(only.wait_until_deposed(), SECOND * 600).await;
    let renewals = model.log().len() - 2;
    assert!((118..=120).contains(&renewals), "{renewals} requests where one in five seconds is enough");
    assert_eq!(model.lease().unwrap().spec.unwrap().lease_transitions, Some(0));
}

#[tokio::test(start_paused = true)]
async fn a_namespace_that_is_not_there_is_made() {
    let model = Model::without_namespace();
    leader(&model, &Line::default(), "only").await;
    assert_eq!(model.log(), [(Method::GET, 404), (Method::POST, 404), (Method::POST, 200)]);
}

#[tokio::test(start_paused = true)]
async fn who_waits_leads_soon_when_the_lease_is_given_back() {
    let model = Model::default();
    let mut first = leader(&model, &Line::default(), "first").await;
    let mut second = candidate(&model, &Line::default(), "second");
    let waits = goes_on(second.wait_until_elected(), SECOND * 100);
    tokio::select! {
        () = waits => {}
        () = first.wait_until_deposed() => panic!("nobody took it"),
    }
    first.resign().await;
    assert_eq!(model.holder(), None);
    assert!(time(second.wait_until_elected()).await < LOOKS);
    assert_eq!(model.lease().unwrap().spec.unwrap().lease_transitions, Some(1));
}

#[tokio::test(start_paused = true)]
async fn who_waits_leads_soon_when_the_lease_is_deleted() {
    let model = Model::default();
    model.write(|lease| *lease = Some(held_by("gone")));
    let mut second = candidate(&model, &Line::default(), "second");
    goes_on(second.wait_until_elected(), SECOND * 4).await;
    model.write(|lease| *lease = None);
    assert!(time(second.wait_until_elected()).await < LOOKS);
}

#[tokio::test(start_paused = true)]
async fn who_does_not_renew_is_waited_for_until_its_term_is_over() {
    let model = Model::default();
    model.write(|lease| *lease = Some(held_by("gone")));
    let mut second = candidate(&model, &Line::default(), "second");
    let took = time(second.wait_until_elected()).await;
    assert!(took >= TERM && took < TERM + LOOKS, "{took:?}");
    let writes = model.log().into_iter().filter(|(method, _)| *method != Method::GET);
    assert_eq!(writes.collect::<Vec<_>>(), [(Method::PUT, 200)], "it is taken, and not emptied before");
}

#[tokio::test(start_paused = true)]
async fn a_slow_api_server_is_enough_to_lead() {
    for millis in [1500, 4500] {
        let model = Model::default();
        let line = Line::default();
        line.is(Way { there: Duration::from_millis(millis), ..Way::default() });
        model.write(|lease| *lease = Some(held_by("")));
        let mut slow = candidate(&model, &line, "slow");
        assert_eq!(time(slow.wait_until_elected()).await, Duration::from_millis(2 * millis), "by its first attempt");
        goes_on(slow.wait_until_deposed(), SECOND * 600).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_is_cut_off_stops_before_its_term_is_over() {
    let model = Model::default();
    let line = Line::default();
    let mut first = leader(&model, &line, "first").await;
    line.is(Way { back: SECOND * 3, ..Way::default() });
    {
        let mut deposed = std::pin::pin!(first.wait_until_deposed());
        goes_on(&mut deposed, SECOND * 6).await;
        line.is(Way { is_cut: true, ..Way::default() });
        assert_eq!(time(deposed).await, SECOND * 11, "12 s after it sent at 5 s what was answered at 8 s");
    }
    assert_eq!(model.holder().as_deref(), Some("first"), "it arrives, though");
    line.is(Way::default());
    assert!(time(first.wait_until_elected()).await < SECOND, "nobody has taken it");
}

#[tokio::test(start_paused = true)]
async fn the_own_name_in_the_lease_is_not_enough_to_lead() {
    let model = Model::default();
    let line = Line::default();
    model.write(|lease| *lease = Some(held_by("me")));
    let mut again = candidate(&model, &line, "me");
    let mut elected = std::pin::pin!(again.wait_until_elected());
    line.is(Way { there: SECOND, ..Way::default() });
    goes_on(&mut elected, SECOND / 2).await;
    line.is(Way { is_cut: true, ..Way::default() });
    goes_on(&mut elected, SECOND * 600).await;
    line.is(Way::default());
    assert!(time(elected).await < TERM);
}

#[tokio::test(start_paused = true)]
async fn who_sees_another_in_the_lease_does_not_lead_any_more() {
    let model = Model::default();
    let mut first = leader(&model, &Line::default(), "first").await;
    model.write(|lease| *lease = Some(held_by("second")));
    assert_eq!(time(first.wait_until_deposed()).await, TERM / 3, "when it renews it");
    goes_on(first.wait_until_elected(), SECOND * 14).await;
}

#[tokio::test(start_paused = true)]
async fn who_finds_its_lease_changed_or_gone_leads_on() {
    let model = Model::default();
    let mut first = leader(&model, &Line::default(), "first").await;
    model.write(|lease| lease.as_mut().unwrap().metadata.labels = Some([("a".into(), "b".into())].into()));
    goes_on(first.wait_until_deposed(), SECOND * 60).await;
    assert!(model.lease().unwrap().metadata.labels.is_some());
    model.write(|lease| *lease = None);
    goes_on(first.wait_until_deposed(), SECOND * 60).await;
    assert_eq!(model.holder().as_deref(), Some("first"));
}

#[tokio::test(start_paused = true)]
async fn an_api_server_that_is_not_there_yet_is_waited_for() {
    for code in [401, 404, 409, 429, 500, 503] {
        let model = Model::default();
        let line = Line::default();
        line.is(Way { refuses: Some(code), ..Way::default() });
        let mut early = candidate(&model, &line, "early");
        goes_on(early.wait_until_elected(), SECOND * 60).await;
        line.is(Way::default());
        early.wait_until_elected().await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn who_may_not_is_told_at_the_start_and_waits_later() {
    let model = Model::default();
    let line = Line::default();
    let forbidden = Way { refuses: Some(403), ..Way::default() };
    line.is(forbidden);
    let refusal = candidate(&model, &line, "first").wait_until_elected().await.unwrap_err();
    assert_eq!(status_code(&refusal), Some(403));

    line.is(Way::default());
    let mut first = leader(&model, &line, "first").await;
    line.is(forbidden);
    assert_eq!(time(first.wait_until_deposed()).await, TERM * 4 / 5);
    goes_on(first.wait_until_elected(), SECOND * 60).await;
    line.is(Way::default());
    first.wait_until_elected().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn who_only_waited_gives_nothing_back() {
    let model = Model::default();
    let line = Line::default();
    model.write(|lease| *lease = Some(held_by("other")));
    let mut second = candidate(&model, &line, "second");
    goes_on(second.wait_until_elected(), SECOND).await;
    line.is(Way { is_cut: true, ..Way::default() });
    assert_eq!(time(second.resign()).await, Duration::ZERO);
    assert_eq!(model.holder().as_deref(), Some("other"));
}

#[tokio::test(start_paused = true)]
async fn who_ends_while_it_takes_the_lease_gives_it_back() {
    let model = Model::default();
    let line = Line::default();
    line.is(Way { back: SECOND, ..Way::default() });
    let mut first = candidate(&model, &line, "first");
    // The Lease is created, and the response has not arrived.
    goes_on(first.wait_until_elected(), SECOND + SECOND / 2).await;
    assert_eq!(model.holder().as_deref(), Some("first"));
    first.resign().await;
    assert_eq!(model.holder(), None);
}

/// Counts a leader as long as the value lives.
struct Leads(Arc<AtomicUsize>);

impl Leads {
    fn begin(leaders: &Arc<AtomicUsize>) -> Self {
        assert_eq!(leaders.fetch_add(1, Ordering::SeqCst), 0, "there are two leaders");
        Self(Arc::clone(leaders))
    }
}

impl Drop for Leads {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A process that stands for election, leads, and stands again. Elections are counted.
fn run(
    model: &Model,
    line: &Line,
    name: usize,
    leaders: &Arc<AtomicUsize>,
    elections: &Arc<AtomicUsize>,
) -> JoinHandle<()> {
    let mut candidate = candidate(model, line, &format!("candidate-{name}"));
    let leaders = Arc::clone(leaders);
    let elections = Arc::clone(elections);
    tokio::spawn(async move {
        loop {
            candidate.wait_until_elected().await.unwrap();
            let _leads = Leads::begin(&leaders);
            elections.fetch_add(1, Ordering::SeqCst);
            candidate.wait_until_deposed().await;
        }
    })
}

fn some_way() -> Way {
    let travel = || Duration::from_millis(fastrand::u64(0..9_000));
    match fastrand::u8(0..6) {
        0 => Way { is_cut: true, there: travel() * 3, ..Way::default() },
        1 => Way { there: travel(), back: travel(), ..Way::default() },
        2 => Way { back: travel(), ..Way::default() },
        3 => Way { refuses: Some(503), ..Way::default() },
        _ => Way::default(),
    }
}

#[tokio::test(start_paused = true)]
async fn whatever_happens_on_the_way_one_leads_at_a_time() {
    for seed in 0..10 {
        fastrand::seed(seed);
        let model = Model::default();
        let leaders = Arc::default();
        let elections = Arc::default();
        let lines = [(); 4].map(|()| Line::default());
        let start = |name: usize| run(&model, &lines[name % 4], name, &leaders, &elections);
        let mut runs = [0, 1, 2, 3].map(start);
        for name in 4..300 {
            sleep(Duration::from_millis(fastrand::u64(0..12_000))).await;
            lines[fastrand::usize(..4)].is(some_way());
            assert!(runs.iter().all(|run| !run.is_finished()), "seed {seed}");
            if fastrand::u8(0..10) == 0 {
                // One is killed, and another one starts in its place.
                runs[name % 4].abort();
                runs[name % 4] = start(name);
            }
        }
        lines.iter().for_each(|line| line.is(Way::default()));
        sleep(TERM * 3).await;
        assert_eq!(leaders.load(Ordering::SeqCst), 1, "seed {seed}: in the end somebody leads");
        assert!(elections.load(Ordering::SeqCst) > 10, "seed {seed}: there is something to see");
        runs.iter().for_each(JoinHandle::abort);
    }
}

#[tokio::test(start_paused = true)]
async fn of_many_that_take_it_at_once_one_gets_it() {
    for expired in [None, Some(held_by("")), Some(held_by("gone"))] {
        let model = Model::default();
        let leaders = Arc::default();
        let elections = Arc::default();
        model.write(|lease| *lease = expired);
        let line = Line::default();
        line.is(Way { there: SECOND, back: SECOND, ..Way::default() });
        let runs: Vec<_> = (0..10).map(|name| run(&model, &line, name, &leaders, &elections)).collect();
        sleep(TERM * 4).await;
        assert!(runs.iter().all(|run| !run.is_finished()));
        assert_eq!((leaders.load(Ordering::SeqCst), elections.load(Ordering::SeqCst)), (1, 1));
    }
}

/// Whether a candidate holds the Lease, however long the response takes.
async fn holds(candidate: &mut Candidate) -> bool {
    loop {
        if let Ok(asked) = candidate.acquire_or_renew().await {
            return asked.is_some();
        }
    }
}

#[tokio::test]
async fn an_api_server_lets_them_lead_one_after_the_other() {
    let server = ApiServer::start(Options::default()).await.unwrap();
    let client = server.client().unwrap();
    // No step of this test waits for the Lease to expire.
    let terms = |identity: &str| LeaseConfig { identity: identity.to_owned(), seconds: 600 };
    let mut first = Candidate::new(&client, "not-there-yet", &terms("first"));
    first.wait_until_elected().await.unwrap();
    let mut second = Candidate::new(&client, "not-there-yet", &terms("second"));
    assert!(!holds(&mut second).await);
    assert!(holds(&mut first).await, "it is renewed");
    first.own_lease = None;
    assert!(holds(&mut first).await, "also if it was looked at before");
    let leases = Api::<Lease>::namespaced(client.clone(), "not-there-yet");
    let spec = leases.get(names::LEASE_NAME).await.unwrap().spec.unwrap();
    assert_eq!((spec.holder_identity.as_deref(), spec.lease_transitions), (Some("first"), Some(0)));

    first.resign().await;
    let free = leases.get(names::LEASE_NAME).await.unwrap().spec.unwrap();
    assert_eq!((free.holder_identity, free.lease_transitions), (None, Some(0)));
    second.wait_until_elected().await.unwrap();
    let spec = leases.get(names::LEASE_NAME).await.unwrap().spec.unwrap();
    assert_eq!((spec.holder_identity.as_deref(), spec.lease_transitions), (Some("second"), Some(1)));

    leases.delete(names::LEASE_NAME, &kube::api::DeleteParams::default()).await.unwrap();
    Candidate::new(&client, "not-there-yet", &terms("third")).wait_until_elected().await.unwrap();
    assert!(!holds(&mut second).await, "its renewal is refused, and then it looks");
}
