//! Appendix: missing tests, omissions, method, machine, configurations.

use maud::{Markup, html};

use crate::catalogue::{self, Axis};
use crate::record::TestRecord;
use crate::report::configurations::{Configuration, FILE_BYTES_MAX, KeptConfigurations};
use crate::report::discards;
use crate::report::method;
use crate::report::model::Report;
use crate::report::story;
use crate::report::text;

/// Tests that need a missing feature.
pub fn pending() -> Markup {
    if catalogue::PENDING.is_empty() {
        return Markup::default();
    }
    html! {
        section id="pending" {
            h2 { "Still to come" }
            p { "Tests of comparable reports that need a feature which weir does not have yet." }
            div class="scroll" {
                table {
                    thead { tr { th { "Test" } th { "What" } th { "Waits for" } } }
                    tbody {
                        @for pending in catalogue::PENDING {
                            tr {
                                th scope="row" { code { (pending.name) } }
                                td { (pending.title) }
                                td { (pending.waits_for) }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn axis_of(test: &TestRecord) -> Axis {
    catalogue::test(&test.name).map_or(Axis::Single, |test| test.axis)
}

/// Absent products, omitted settings, discarded rounds and tests that were not run.
pub fn left_out(report: &Report) -> Markup {
    let run = &report.run;
    let omissions =
        || run.tests.iter().flat_map(|test| test.omissions.iter().map(move |o| (test, o)));
    let discarded =
        || run.tests.iter().flat_map(|test| test.discarded.iter().map(move |d| (test, d)));
    let is_empty = run.absent.is_empty()
        && omissions().next().is_none()
        && discarded().next().is_none()
        && report.tests_not_run.is_empty()
        && report.unknown_tests.is_empty();
    html! {
        section id="left-out" {
            h2 { "Left out" }
            @if is_empty { p { "Nothing: every product ran every test at every setting, and no measurement was discarded." } }
            ul {
                @for absence in &run.absent {
                    li { b { (report.called(&absence.product)) } " took no part: " (absence.reason) }
                }
                @for (test, omission) in omissions() {
                    li {
                        b { (report.called(&omission.product)) } " in " code { (test.name) }
                        (story::place_of(axis_of(test), omission)) ": " (omission.reason)
                    }
                }
                @for test in &report.tests_not_run {
                    li { "Test " code { (test.name) } " is not in this run" }
                }
                @for name in &report.unknown_tests {
                    li { "Test " code { (name) } " is in the run, but not known to this version of weir" }
                }
            }
            @let count = discarded().count();
            @if count > 0 {
                details {
                    summary { (count) " measurements discarded; the reasons are under Method" }
                    ul {
                        @for (test, discard) in discarded() {
                            li { code { (test.name) } ": " (discards::discarded(report, axis_of(test), discard)) }
                        }
                    }
                }
            }
        }
    }
}

/// The method of measurement, so that a reader can check it.
pub fn method(report: &Report) -> Markup {
    html! {
        section id="method" {
            h2 { "Method" }
            dl class="method" {
                @for (name, explanation) in method::terms(report) {
                    div { dt { (name) } dd { (explanation) } }
                }
            }
        }
    }
}

/// The machine and the products.
pub fn machine(report: &Report) -> Markup {
    let run = &report.run;
    let machine = &run.machine;
    let gib = machine.memory_bytes as f64 / f64::from(1 << 30);
    html! {
        section id="machine" {
            h2 { "Machine and products" }
            div class="scroll" {
                table class="plain" {
                    tbody {
                        tr { th scope="row" { "Host" } td { (machine.host) } }
                        tr { th scope="row" { "Processor" } td { (machine.cpu) ", " (text::counted(machine.cores, "core")) } }
                        tr { th scope="row" { "Memory" } td { (text::number(gib)) " GiB" } }
                        tr { th scope="row" { "System" } td { (machine.system) } }
                        tr { th scope="row" { "Kernel" } td { (machine.kernel) } }
                        tr { th scope="row" { "Descriptors per process" } td { (text::count(machine.descriptors_max)) } }
                        tr {
                            th scope="row" { "Energy counters" }
                            td { @if machine.energy_readable { "readable" } @else { "not readable: no requests per joule" } }
                        }
                        tr { th scope="row" { "Command" } td { code { (run.command) } } }
                    }
                }
            }
            (products(report))
        }
    }
}

/// Versions, TLS libraries and hashes of the products.
fn products(report: &Report) -> Markup {
    let told = |fact: &Option<String>| fact.clone().unwrap_or_else(|| "not recorded".to_owned());
    html! {
        div class="scroll" {
            table class="plain programs" {
                thead {
                    tr { th { "Product" } th { "Version" } th { "TLS library" } th { "Commit" } th { "SHA-256 of the program" } }
                }
                tbody {
                    @for (index, product) in report.run.products.iter().enumerate() {
                        tr {
                            th scope="row" { (report.label(index)) }
                            td { (product.version) }
                            td { (told(&product.tls)) }
                            td { code { (told(&product.commit)) } }
                            td { code { (told(&product.sha256)) } }
                        }
                    }
                }
            }
        }
    }
}

/// All configurations, with identical ones shown once.
pub fn configurations(report: &Report, kept: &KeptConfigurations) -> Markup {
    html! {
        section id="configurations" {
            h2 { "Configurations" }
            @if kept.configurations.is_empty() {
                p { "This run kept no configurations." }
            } @else {
                p { "The configurations of every product in every test, as used. Those that several tests share appear once." }
            }
            @for configuration in &kept.configurations { (configuration_details(report, configuration)) }
            @if kept.left_out > 0 {
                p class="note" { (kept.left_out) " further files are in the run's folder." }
            }
        }
    }
}

fn configuration_details(report: &Report, configuration: &Configuration) -> Markup {
    html! {
        details {
            summary {
                b { (report.called(&configuration.product)) } " " code { (configuration.file) }
                span class="used" { (configuration.tests.join(", ")) }
            }
            pre { (configuration.text) }
            @if configuration.is_cut {
                p class="note" { "Cut off after " (FILE_BYTES_MAX >> 10) " KiB." }
            }
        }
    }
}
