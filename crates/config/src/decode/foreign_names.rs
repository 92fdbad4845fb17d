//! Names of components that the OpenTelemetry Collector or its contributions have, and this build does not.
//!
//! Such a name is no typing error, and gets a message of its own.

pub(crate) const RECEIVERS: &str = "\
    active_directory_ds active_directory_inv aerospike apache apache_spark apachespark aws_lambda awscloudwatch \
    awscontainerinsightreceiver awsecscontainermetrics awsfirehose awss3 awsxray azure_blob azure_event_hub \
    azure_functions azure_monitor azureblob azureeventhub azuremonitor carbon chrony cisco_os ciscoos \
    cloud_foundry cloudflare cloudfoundry collectd couchdb datadog docker_stats elasticsearch envoy_als envoyals \
    expvar faro file_stats filestats flink_metrics flinkmetrics fluent_forward fluentforward \
    github gitlab google_cloud_spanner googlecloudmonitoring googlecloudpubsub googlecloudpubsubpush \
    googlecloudspanner haproxy host_metrics hostmetrics http_check httpcheck iis influxdb jaeger jmx journald \
    k8s_cluster k8s_events k8s_objects k8sobjects kafka kafka_metrics kafkametrics kubelet_stats kubeletstats \
    libhoney loki memcached mongodb mongodb_atlas mongodbatlas mysql named_pipe namedpipe netflow nginx nop nsxt \
    ntp oracledb osquery otelarrow otlp_json_file otlpjsonfile podman_stats postgresql pprof prometheus \
    prometheus_remote_write prometheus_simple prometheusremotewrite pulsar purefa purefb rabbitmq receiver_creator \
    redfish redis riak saphana signalfx skywalking snmp snowflake solace splunk_enterprise splunk_hec \
    splunkenterprise sqlquery sqlserver ssh_check sshcheck statsd stef syslog systemd tcp_check tcp_log tcpcheck \
    tcplog tls_check tlscheck udp_log udplog vcenter vcr wavefront webhook_event webhookevent windows_event_log \
    windows_service windowseventlog windowsperfcounters windowsservice yang_grpc yanggrpc zipkin zookeeper";

pub(crate) const PROCESSORS: &str = "\
    cardinality_guardian coralogix cumulativetodelta deltatocumulative deltatorate drain \
    gen_ai_normalizer geoip groupbyattrs groupbytrace interval isolationforest \
    log_dedup logdedup logstransform lookup metric_start_time metrics_transform metricsgeneration metricstarttime \
    metricstransform remotetap resource_detection resourcedetection \
    schema span spanpruning sumologic transform unroll";

pub(crate) const EXPORTERS: &str = "\
    alertmanager alibabacloud_logservice awscloudwatchlogs awsemf awskinesis awss3 awsxray azure_blob azureblob \
    azuredataexplorer azuremonitor bmc_helix bmchelix cassandra clickhouse coralogix datadog dataset doris \
    faro google_cloud_storage googlecloud googlecloudpubsub googlecloudstorage \
    googlemanagedprometheus honeycomb_marker honeycombmarker influxdb kafka \
    logicmonitor logzio mezmo otelarrow prometheus prometheus_remote_write prometheusremotewrite pulsar \
    rabbitmq sematext sentry signalfx splunk_hec stef sumologic syslog tencentcloud_logservice tinybird zipkin";

pub(crate) const CONNECTORS: &str = "\
    count datadog exceptions failover grafanacloud metrics_as_logs metricsaslogs otlp_json otlpjson round_robin \
    roundrobin routing service_graph servicegraph signal_to_metrics signaltometrics slow_sql slowsql span_metrics \
    spanmetrics sum";

pub(crate) const EXTENSIONS: &str = "\
    ack asapclient avro_log_encoding aws_logs_encoding awscloudwatchmetricstreams_encoding awslogs_encoding \
    awsproxy azure_auth azure_encoding azureauth cfgarden_observer cgroup_runtime cgroupruntime datadog db_storage \
    docker_observer ecs_observer google_cloud_logentry_encoding googleclientauth \
    googlecloudlogentry_encoding headers_setter healthcheckv2 host_observer http_forwarder jaeger_encoding \
    jaegerremotesampling json_log_encoding k8s_leader_elector k8s_observer kafkatopics_observer mcp memory_limiter \
    oidc opamp otlp_encoding pebble_tail_storage pprof redis_storage remotetap sigv4auth skywalking_encoding \
    solarwindsapmsettings sumologic text_encoding zipkin_encoding zpages";

/// Names that the Collector has removed, by section, and their replacements.
const REMOVED_COMPONENTS: [(&str, &str, &str); 7] = [
    ("exporters", "logging", "use `debug`"),
    ("exporters", "jaeger", "use `otlp`: Jaeger takes OTLP"),
    ("exporters", "jaeger_thrift", "use `otlphttp`: Jaeger takes OTLP"),
    ("exporters", "opencensus", "use `otlp`"),
    ("processors", "queued_retry", "use `sending_queue` and `retry_on_failure` of the exporter"),
    ("extensions", "memory_ballast", "remove it: this collector has no garbage collector"),
    ("extensions", "ballast", "remove it: this collector has no garbage collector"),
];

/// The replacement for a component that the Collector has removed.
pub(crate) fn replacement_for(section: &str, name: &str) -> Option<&'static str> {
    REMOVED_COMPONENTS.iter().find(|(at, removed, _)| (*at, *removed) == (section, name)).map(|(.., instead)| *instead)
}
