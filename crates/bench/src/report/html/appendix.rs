//! What is still to come, what was left out, how it was measured, on what, and with which configurations.

use maud::{Markup, html};

use crate::catalogue::{self, Axis, COUNTED_NOISE_SHARE};
use crate::record::TestRecord;
use crate::report::configurations::{Configuration, FILE_BYTES_MAX, Kept};
use crate::report::knee::P99_MAX_MS;
use crate::report::model::Report;
use crate::report::story;
use crate::report::text;

/// The tests that wait for their feature.
pub fn pending() -> Markup {
    html! {
        section id="pending" {
            h2 { "Still to come" }
            p { "Tests of the reports that this one stands up to, whose feature weir does not have yet." }
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

/// Absent products, omitted settings, discarded rounds, tests that were not run.
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
            @if is_empty { p { "Nothing: every product ran every test at every setting, and no measurement was thrown away." } }
            ul {
                @for absence in &run.absent {
                    li { b { (text::product(&absence.product)) } " took no part: " (absence.reason) }
                }
                @for (test, omission) in omissions() {
                    li {
                        b { (text::product(&omission.product)) } " in " code { (test.name) }
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
                    summary { (count) " measurements thrown away: the machine was disturbed" }
                    ul {
                        @for (test, discard) in discarded() {
                            li { code { (test.name) } ": " (story::discarded(axis_of(test), discard)) }
                        }
                    }
                }
            }
        }
    }
}

/// How it was measured, so that a reader can object.
pub fn method(report: &Report) -> Markup {
    let bed = &report.run.bed;
    let cores = |cores: &[usize]| {
        let list: Vec<String> = cores.iter().map(usize::to_string).collect();
        match list.len() {
            0 => "no core of their own".to_owned(),
            1 => format!("core {}", list[0]),
            _ => format!("cores {}", text::list(&list)),
        }
    };
    html! {
        section id="method" {
            h2 { "Method" }
            dl class="method" {
                (term("Side by side", html! {
                    "In every round each product is measured in turn at the same setting, on the same machine, with \
                     the same kernel, origin and load. A ratio is formed within one round only; the median of the \
                     rounds' ratios counts. Absolute figures of two runs must not be compared, ratios may be."
                }))
                (term("Placement", html! {
                    "The product under test has " (cores(&bed.product_cores)) ", load and origin have "
                    (cores(&bed.load_cores)) "; all is joined by " (bed.kind) ". As many workers as cores, keep-alive \
                     to the members, no access log, in every product. The configurations are below."
                }))
                (term("Noise", html! {
                    "The range behind a ratio holds the true one in 95% of the cases. From six rounds on it is the \
                     interval of the sign test, which assumes nothing about the noise. With fewer rounds no such \
                     interval exists (the range of three rounds holds the truth in 75% of the cases only), so the \
                     range of the rounds' ratios is widened, for three rounds to 1.35 times its width on either side \
                     of the median, which is right for noise that is normal in the logarithm. A difference inside of \
                     it is called even. What is counted and not timed (instructions, system calls, memory per \
                     connection) comes out the same again, so that one round can be judged: its noise is taken \
                     as ±" (text::number(COUNTED_NOISE_SHARE * 100.0)) "%, or more where several rounds show \
                     more. Of twenty comparisons between equals one will still be called a win or a loss."
                }))
                (what_the_figures_mean())
            }
        }
    }
}

fn what_the_figures_mean() -> Markup {
    html! {
        (term("Core busy", html! {
            "Time that passed, less the time in which the product's cores were idle, waited for input or \
             output, or were taken by the hypervisor (steal), less the share that the core is busy while the \
             test bed rests. So interrupt work for the product's packets counts as the product's. Idle time \
             is counted exactly by Linux, all other kinds by sampling, which is why the rest is taken of the \
             clock and not added up. " b { "Own threads" } " is the scheduler's account of the product's \
             threads alone."
        }))
        (term("Latency", html! {
            "In an open loop requests have their times beforehand, and latency counts from that intended \
             time to the last byte, whether or not a connection was free: a product that stalls is charged \
             for everyone who waited. In a closed loop (as fast as answered) it counts from the actual send. \
             Percentiles are of an HDR histogram; they are drawn as far out as five transactions of a round \
             were slower."
        }))
        (term("Errors", html! {
            "A transaction is a complete response with the expected status and length, and checksum where one \
             is asked for. Everything else that was begun (not connected, reset, cut short, timed out, not \
             HTTP, wrong) is an error: counted, shown, and in no rate. A request of an open loop that was \
             never sent, because every connection was busy until the end, is no error: it has no latency \
             either, so it is counted and shown apart, and its product has not kept the rate."
        }))
        (term("Knee", html! {
            "The last step of the ramp at which at least 99% of the offered rate was achieved with a P99 below "
            (P99_MAX_MS) " ms, by the medians of the rounds, before the first step at which it was not or that \
             was not measured. A knee may lie anywhere between these two, so the range of a ratio of knees \
             holds that, too; a round without any step counts as below the first. Past a knee, latency tells how \
             long the test lasted: there it is not judged, and the knees decide."
        }))
        (term("Best peer", html! {
            "The product other than weir and the relay with the best median at that setting; chosen anew for \
             every figure and setting, so weir is held against the strongest each time."
        }))
    }
}

fn term(name: &str, explanation: Markup) -> Markup {
    html! { div { dt { (name) } dd { (explanation) } } }
}

/// The machine, and who took part.
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
                        @for product in &run.products {
                            tr { th scope="row" { (text::product(&product.name)) } td { (product.version) } }
                        }
                    }
                }
            }
        }
    }
}

/// Every configuration, identical ones once.
pub fn configurations(kept: &Kept) -> Markup {
    html! {
        section id="configurations" {
            h2 { "Configurations" }
            @if kept.configurations.is_empty() {
                p { "This run kept none." }
            } @else {
                p { "As used, of every product in every test; what several tests share stands once." }
            }
            @for configuration in &kept.configurations { (configuration_details(configuration)) }
            @if kept.left_out > 0 {
                p class="note" { (kept.left_out) " further files are in the run's folder." }
            }
        }
    }
}

fn configuration_details(configuration: &Configuration) -> Markup {
    html! {
        details {
            summary {
                b { (text::product(&configuration.product)) } " " code { (configuration.file) }
                span class="used" { (configuration.tests.join(", ")) }
            }
            pre { (configuration.text) }
            @if configuration.is_cut {
                p class="note" { "Cut off after " (FILE_BYTES_MAX >> 10) " KiB." }
            }
        }
    }
}
