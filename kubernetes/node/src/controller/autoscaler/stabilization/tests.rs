use serde_json::{Value, json};

use super::*;

/// A history with a clock.
struct Scene {
    history: ScalingHistory,
    behavior: Option<HorizontalPodAutoscalerBehavior>,
    now: Instant,
    current: i32,
}

impl Scene {
    fn new(current: i32, behavior: Option<Value>) -> Self {
        let behavior = behavior.map(|behavior| serde_json::from_value(behavior).unwrap());
        let mut history = ScalingHistory::default();
        let now = Instant::now();
        history.record_first_replicas(current, now);
        Self { history, behavior, now, current }
    }

    /// A recommendation this number of seconds after the last one.
    fn after(&mut self, seconds: u64, wanted: i32) -> NormalizedReplicas {
        self.now += Duration::from_secs(seconds);
        let behavior = self.behavior.as_ref();
        let limits =
            ScalingLimits { min: 2, max: 50, current: self.current, behavior, down_window: Duration::from_secs(300) };
        let paced = self.history.normalize_replicas(wanted, &limits, self.now);
        if paced.replicas != self.current {
            self.history.record_rescale(self.current, paced.replicas, &limits, self.now);
            self.current = paced.replicas;
        }
        paced
    }

    fn replicas_after(&mut self, seconds: u64, wanted: i32) -> i32 {
        self.after(seconds, wanted).replicas
    }
}

fn policies(kind: &str, value: i32, period: i32) -> Value {
    json!({ "type": kind, "value": value, "periodSeconds": period })
}

#[test]
fn without_behavior_it_doubles_at_most() {
    let mut scene = Scene::new(3, None);
    let paced = scene.after(15, 40);
    assert_eq!((paced.replicas, paced.limited, paced.limits), (6, true, TOO_FAST_UP));
    assert_eq!(scene.replicas_after(15, 40), 12);
    assert_eq!(scene.replicas_after(15, 13), 24, "40 was recommended just now");
    assert_eq!(Scene::new(1, None).replicas_after(15, 40), 4);
    assert_eq!(Scene::new(40, None).after(15, 90).limits, TOO_MANY);
}

#[test]
fn it_goes_down_only_to_the_highest_recommendation_of_the_window() {
    let mut scene = Scene::new(10, None);
    let paced = scene.after(15, 3);
    assert_eq!((paced.replicas, paced.able_to_scale, paced.limited), (10, DOWN_STABILIZED, false));
    assert_eq!(scene.replicas_after(200, 5), 10);
    assert_eq!(scene.replicas_after(84, 4), 10, "299 seconds after the first");
    let paced = scene.after(1, 1);
    assert_eq!(paced.replicas, 5);
    assert_eq!(scene.after(215, 1).replicas, 4);
    let paced = scene.after(300, 1);
    assert_eq!(
        (paced.replicas, paced.able_to_scale, paced.limits, paced.limited),
        (2, RECOMMENDATION_MATCHES, TOO_FEW, true)
    );
}

#[test]
fn policies_limit_the_change_in_their_period() {
    let up = json!({ "policies": [policies("Pods", 4, 60), policies("Percent", 50, 60)], "selectPolicy": "Max" });
    let down = json!({ "policies": [policies("Pods", 1, 60)], "stabilizationWindowSeconds": 0, "selectPolicy": "Max" });
    let mut scene = Scene::new(10, Some(json!({ "scaleUp": up, "scaleDown": down })));
    let paced = scene.after(0, 40);
    assert_eq!((paced.replicas, paced.limits), (15, TOO_FAST_UP));
    assert_eq!(scene.replicas_after(30, 40), 15, "the period began with ten");
    assert_eq!(scene.replicas_after(31, 40), 23, "half of fifteen, rounded up");
    let paced = scene.after(61, 5);
    assert_eq!((paced.replicas, paced.limits), (22, TOO_FAST_DOWN));
    assert_eq!(scene.replicas_after(30, 5), 22);
    assert_eq!(scene.replicas_after(31, 5), 21);
}

#[test]
fn the_smallest_change_can_be_chosen_and_none() {
    let both = json!([policies("Pods", 4, 60), policies("Percent", 10, 60)]);
    let rules = |select: &str| json!({ "policies": both, "selectPolicy": select, "stabilizationWindowSeconds": 0 });
    let mut scene = Scene::new(10, Some(json!({ "scaleUp": rules("Min"), "scaleDown": rules("Min") })));
    assert_eq!(scene.replicas_after(0, 40), 11);
    assert_eq!(scene.replicas_after(61, 2), 9, "eleven without ten percent");
    let mut scene = Scene::new(10, Some(json!({ "scaleUp": rules("Disabled"), "scaleDown": rules("Disabled") })));
    assert_eq!(scene.replicas_after(0, 40), 10);
    assert_eq!(scene.replicas_after(0, 2), 10);
}

#[test]
fn a_window_for_going_up_waits_for_the_lowest_recommendation() {
    let any = json!([policies("Percent", 1000, 15)]);
    let up = json!({ "policies": any, "stabilizationWindowSeconds": 60, "selectPolicy": "Max" });
    let down = json!({ "policies": any, "selectPolicy": "Max" });
    let mut scene = Scene::new(3, Some(json!({ "scaleUp": up, "scaleDown": down })));
    let paced = scene.after(30, 9);
    assert_eq!((paced.replicas, paced.able_to_scale), (3, UP_STABILIZED));
    assert_eq!(scene.replicas_after(31, 12), 9);
    assert_eq!(scene.replicas_after(15, 2), 9, "down takes the five minutes that nobody changed");
}
