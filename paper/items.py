"""What the paper contains, line by line, and where it is in this repository.

:data:`MAP` leads from a place in the paper to files and functions. :data:`ITEMS` has one row for
each thing that the paper says, with its state. Names are dotted Python names; a test imports them.
"""

from __future__ import annotations

import inspect
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from pandas import DataFrame

ROOT = Path(__file__).parents[1]


class Place(NamedTuple):
    """A place in the paper, and the names that implement it."""

    paper: str
    content: str
    names: tuple[str, ...]


class Item(NamedTuple):
    """One thing that the paper says, its state here, and the names to look at."""

    paper: str
    says: str
    state: str
    names: tuple[str, ...]


def _place(paper: str, content: str, names: str) -> Place:
    return Place(paper, content, tuple(names.split()))


def _item(paper: str, says: str, state: str, names: str) -> Item:
    return Item(paper, says, state, tuple(names.split()))


def find_name(name: str) -> object:
    """Return what a dotted name stands for; raise if it does not exist."""
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        try:
            value: object = import_module(".".join(parts[:end]))
        except ModuleNotFoundError:
            continue
        for attribute in parts[end:]:
            value = inspect.getattr_static(value, attribute)
        return value
    raise ModuleNotFoundError(name)


def file_of(name: str) -> str:
    """Return the file, from the root of the repository, that holds a dotted name.

    Examples
    --------
    >>> file_of("equipoise.audits.rs_audit.RSAudit")
    'src/equipoise/audits/rs_audit.py'
    """
    parts = name.split(".")
    source = ROOT / "src" if parts[0] == "equipoise" else ROOT
    for end in range(len(parts), 0, -1):
        path = source.joinpath(*parts[:end])
        for candidate in (path.with_suffix(".py"), path / "__init__.py"):
            if candidate.is_file():
                return str(candidate.relative_to(ROOT))
    raise ModuleNotFoundError(name)


def map_table() -> DataFrame:
    """Return the map as the page shows it: place, content, file and function."""
    rows = []
    for place in MAP:
        files = dict.fromkeys(f"`{file_of(name)}`" for name in place.names)
        rows.append(
            {
                "in the paper": place.paper,
                "what it is": place.content,
                "file": ", ".join(files),
                "function": ", ".join(f"`{_inside(name)}`" for name in place.names),
            }
        )
    return DataFrame(rows)


def items_table() -> DataFrame:
    """Return the items as the page shows them, numbered."""
    rows = []
    for number, item in enumerate(ITEMS, start=1):
        rows.append(
            {
                "no.": number,
                "in the paper": item.paper,
                "the paper says": item.says,
                "state": item.state,
                "where to look": ", ".join(f"`{_short(name)}`" for name in item.names),
            }
        )
    return DataFrame(rows)


def _inside(name: str) -> str:
    """Return the part of a dotted name that stands inside its file."""
    path = Path(file_of(name)).with_suffix("")
    parts = [part for part in path.parts if part not in ("src", "__init__")]
    return ".".join(name.split(".")[len(parts) :])


def _short(name: str) -> str:
    """Return a dotted name without the package's own name."""
    return name.removeprefix("equipoise.")


MAP: tuple[Place, ...] = (
    _place(
        "section 2, definition of the EOD",
        "equalized odds difference, Delta",
        "equipoise.metrics.METRICS equipoise.worlds.world.CellWorld.gap",
    ),
    _place(
        "section 2, Definition 1",
        "(gamma, epsilon, delta)-fairness audit",
        "equipoise.question.Question equipoise.question.Question.truth",
    ),
    _place(
        "section 2, Definition 2",
        "audit cost",
        "equipoise.question.Costs equipoise.audits.spending.Account",
    ),
    _place(
        "section 2, mixture model",
        "Y by q, X by an exponential family",
        "equipoise.worlds.mixture.MixtureWorld equipoise.mixture.families.Family",
    ),
    _place(
        "Theorem 1",
        "cost of the Baseline",
        "equipoise.bounds.theorems.upper_bound equipoise.bounds.theorems.expectation",
    ),
    _place(
        "Theorem 2",
        "cost of RS-Audit",
        "equipoise.bounds.theorems.upper_bound equipoise.bounds.theorems.expectation",
    ),
    _place(
        "Theorem 3, Tables 1 and 2",
        "lower bound, and its pair of instances",
        "equipoise.bounds.theorems.family_bound equipoise.worlds.lower_bound_pair.lower_bound_pair",
    ),
    _place(
        "Assumption 1",
        "structural constants",
        "equipoise.mixture.trunc_est.StructuralConstants "
        "equipoise.mixture.model_checks.check_assumptions",
    ),
    _place(
        "Assumption 2, equation (1)",
        "separation condition",
        "equipoise.mixture.trunc_est.separation_needed "
        "equipoise.mixture.model_checks.measure_separation",
    ),
    _place("Theorem 4", "cost of Exp-Audit", "equipoise.bounds.theorems.upper_bound"),
    _place(
        "Algorithm 1, line 1",
        "tau",
        "equipoise.audits.estimated_rates.paper_tau equipoise.audits.thresholds.choose_threshold",
    ),
    _place(
        "Algorithm 1, lines 2 and 3",
        "loops over y and a",
        "equipoise.audits.rs_audit.RSAudit equipoise.audits.tau_audit.TauAudit._list_goals",
    ),
    _place(
        "Algorithm 1, line 4",
        "Online and Past",
        "equipoise.audits.tau_audit.Online equipoise.history.past.Past.rows_until",
    ),
    _place(
        "Algorithm 1, lines 5 to 7",
        "estimates, Delta-hat, verdict",
        "equipoise.audits.tau_audit.TauAudit._decide "
        "equipoise.audits.estimated_rates.finding_from_rates",
    ),
    _place(
        "Remark 1 (Baseline and RS-Audit)",
        "difference of the two costs",
        "equipoise.bounds.theorems.expectation paper.blackbox.run",
    ),
    _place(
        "Algorithm 2, line 1",
        "epsilon', tau', tau",
        "equipoise.mixture.map_weights.ExpConstants",
    ),
    _place(
        "Algorithm 2, line 4",
        "TruncEst for each (y, a)",
        "equipoise.audits.exp_audit.ExpAudit.published "
        "equipoise.mixture.model.PastFeatures.published_model",
    ),
    _place(
        "Algorithm 2, line 5",
        "Online and Past",
        "equipoise.audits.exp_audit.ExpAudit._learn_label equipoise.history.past.Past.rows_until",
    ),
    _place(
        "Algorithm 2, line 6",
        "coarse weights",
        "equipoise.audits.exp_audit.ExpAudit._coarse_weights",
    ),
    _place(
        "Algorithm 2, line 7",
        "MAP oracle",
        "equipoise.mixture.map_weights.FeatureCounts "
        "equipoise.mixture.likelihood_weights.log_ratio",
    ),
    _place(
        "Algorithm 2, line 8",
        "R features, MAP counts",
        "equipoise.mixture.map_weights.ExpConstants.map_features "
        "equipoise.mixture.map_weights.FeatureCounts.map_weight",
    ),
    _place(
        "Algorithm 2, lines 9 and 10",
        "Delta-hat, verdict",
        "equipoise.audits.exp_finding.finding_from_weights",
    ),
    _place(
        "Remark 4 (recovered parameters)",
        "Bayes classifier, fairness and accuracy",
        "equipoise.mixture.bayes_classifier.BayesClassifier "
        "equipoise.mixture.fairness_accuracy.fairness_accuracy_curve paper.parameters.run",
    ),
    _place(
        "Remark 5 (separation condition)",
        "test it, or continue as RS-Audit",
        "equipoise.audits.exp_audit.ExpAudit._test_separation",
    ),
    _place("Figure 1", "the key results", "paper.__main__.draw_figure_1"),
    _place(
        "Remark 6 (Empirical Choices)",
        "logistic regression, public tables, Adult without assumptions",
        "paper.tables.CLASSIFIERS paper.blackbox.run paper.embedded.run",
    ),
    _place(
        "Algorithm 3, lines 1 to 3",
        "tau, loops",
        "equipoise.audits.baseline.BaselineAudit equipoise.audits.estimated_rates.paper_tau",
    ),
    _place(
        "Algorithm 3, lines 4 and 5",
        "labels of all people, and the past",
        "equipoise.audits.tau_audit.Online equipoise.audits.tau_audit.TauAudit._read_past",
    ),
    _place(
        "Algorithm 3, lines 6 to 8",
        "estimates, Delta-hat, verdict",
        "equipoise.audits.tau_audit.TauAudit._decide",
    ),
    _place(
        "Algorithm 4, line 1",
        "n, m, eta of TruncEst",
        "equipoise.mixture.trunc_est.trunc_est_constants",
    ),
    _place("Algorithm 4, lines 2 to 9", "TruncEst", "equipoise.mixture.trunc_est.trunc_est"),
    _place(
        "Algorithm 4, line 7",
        "projection",
        "equipoise.mixture.trunc_est.Ball.project",
    ),
    _place(
        "Algorithm 4, line 10",
        "majority choice",
        "equipoise.mixture.trunc_est._choose_by_majority",
    ),
    _place(
        "Algorithm 5",
        "SampleGradient",
        "equipoise.mixture.trunc_est._accepted_draw",
    ),
    _place(
        "Theorem of Lee et al. (appendix B)",
        "kappa_f, lambda_f, rho, G",
        "equipoise.mixture.trunc_est.TruncEstConstants",
    ),
    _place(
        "Table 3",
        "exponential families",
        "equipoise.mixture.families.Exponential equipoise.mixture.families.Weibull "
        "equipoise.mixture.families.ContinuousBernoulli "
        "equipoise.mixture.families.ContinuousPoisson equipoise.mixture.gaussian.Gaussian "
        "paper.families.run",
    ),
    _place(
        "appendix C, Algorithm 6 and lemmas",
        "sampling until tau successes",
        "equipoise.history.past.Past.rows_until equipoise.audits.tau_audit.Online "
        "equipoise.audits.estimated_rates.paper_tau",
    ),
    _place(
        "Tables 4 and 5",
        "columns of Adult and Law School",
        "paper.tables.describe_columns",
    ),
    _place(
        "Figures 2 and 3",
        "black box on Adult and Law School",
        "paper.blackbox.run paper.blackbox.draw_dataset",
    ),
    _place(
        "Figure 4, Table 6",
        "mixture model, synthetic",
        "paper.synthetic.run paper.synthetic.correctness",
    ),
    _place("Figure 5", "mixture model, embedded Adult", "paper.embedded.run"),
)

ITEMS: tuple[Item, ...] = (
    # -- section 2
    _item(
        "section 2",
        "Y is known for the approved, A and f for all people. The auditor may override denials",
        "works",
        "equipoise.audits.base.Audit.ask equipoise.protocol.Want",
    ),
    _item(
        "section 2",
        "equalized odds difference: the largest gap over y and pairs of groups",
        "works",
        "equipoise.metrics.METRICS equipoise.comparison.ResolvedComparison",
    ),
    _item(
        "section 2",
        "the techniques apply to demographic parity and equal opportunity",
        "works. Demographic parity needs no label",
        "equipoise.audits.estimated_rates.can_answer",
    ),
    _item(
        "Definition 1",
        "FAIR: Delta <= gamma. UNFAIR: Delta > gamma + epsilon. Right with probability 1 - delta",
        "works",
        "equipoise.question.Question.truth",
    ),
    _item(
        "section 2",
        "more than two groups",
        "works",
        "equipoise.cells.Cells",
    ),
    _item(
        "Definition 2",
        "c_feat for features of a denied person, c_lab more if the label is 0",
        "works",
        "equipoise.audits.spending.Account.record_answer equipoise.question.Costs.expected",
    ),
    _item(
        "section 2",
        "past features of denied people are free to read",
        "works",
        "equipoise.mixture.model.PastFeatures.unseen",
    ),
    _item(
        "section 2",
        "mixture of exponential families with known h, T, W",
        "works",
        "equipoise.mixture.families.Family equipoise.worlds.mixture.GroupMixture",
    ),
    _item(
        "section 2",
        "Gaussian, Poisson, Exponential and Binomial belong to the class",
        "works",
        "equipoise.mixture.gaussian.Gaussian equipoise.mixture.families.Poisson "
        "equipoise.mixture.families.Exponential equipoise.mixture.families.Binomial",
    ),
    # -- section 3
    _item(
        "Theorem 1",
        "cost and labels of the Baseline",
        "holds with 624 log(8K/delta), as in the proof",
        "equipoise.bounds.theorems.upper_bound paper.theorems.run",
    ),
    _item(
        "Theorem 2",
        "cost and labels of RS-Audit",
        "holds with 624 log(8K/delta), as in the proof",
        "equipoise.bounds.theorems.upper_bound paper.theorems.run",
    ),
    _item(
        "after Theorem 2, Remark 1",
        "the Baseline costs more by sums over A != a",
        "works, as the difference of two expectations",
        "equipoise.bounds.theorems.expectation",
    ),
    _item(
        "Theorem 3",
        "no audit costs less than Omega(...) on a family of instances",
        "works. Says something for delta < 1/4 only (note 19)",
        "equipoise.bounds.theorems.family_bound",
    ),
    _item(
        "Tables 1 and 2",
        "the FAIR and the UNFAIR instance of the proof",
        "works",
        "equipoise.worlds.lower_bound_pair.lower_bound_pair",
    ),
    _item(
        "Lemmas 1 and 2 (appendix A.3)",
        "divergence decomposition under partial feedback",
        "used: C* is the same divergence at the best allocation",
        "equipoise.bounds.least_cost.lower_bound",
    ),
    _item(
        "Assumption 1 (i)",
        "P[f=1 | Y=y, A=a] >= alpha > 0",
        "tested on the fits",
        "equipoise.mixture.model_checks.check_assumptions",
    ),
    _item(
        "Assumption 1 (ii)",
        "kappa, lambda, L, beta on Theta, log-concave, T polynomial",
        "works. Constants of the smallest Theta are computed",
        "equipoise.mixture.families.Family.curvature "
        "equipoise.mixture.trunc_est.StructuralConstants",
    ),
    _item(
        "Assumption 2",
        "separation condition (1)",
        "works, as printed. The proof needs more (note 14)",
        "equipoise.mixture.trunc_est.separation_needed",
    ),
    _item(
        "Theorem 4",
        "cost of Exp-Audit under the assumptions",
        "holds in a world that meets them",
        "equipoise.bounds.theorems.upper_bound paper.theorems.separated_world",
    ),
    # -- section 4
    _item(
        "section 4",
        "random stopping time N at the tau-th person, q-hat = tau/N",
        "works, in request order",
        "equipoise.audits.tau_audit.Online",
    ),
    _item(
        "Algorithm 1",
        "tau = 576 log(8K/delta)/epsilon^2",
        "works, rounded up",
        "equipoise.audits.estimated_rates.paper_tau",
    ),
    _item(
        "Algorithm 1",
        "Past(D, tau, y, a) over the rows of group a",
        "works. A past that runs dry ends INCONCLUSIVE or by the free check (note 3)",
        "equipoise.history.past.Past.rows_until",
    ),
    _item(
        "Algorithm 1",
        "UNFAIR above gamma + epsilon/2, else FAIR",
        "works",
        "equipoise.audits.estimated_rates.finding_from_rates",
    ),
    _item(
        "Algorithm 1",
        "overlooks all people of other groups",
        "works",
        "equipoise.audits.rs_audit.RSAudit",
    ),
    _item(
        "Algorithm 3",
        "labels of all people, each phase from the start",
        "works. reuse_labels=True keeps labels",
        "equipoise.audits.baseline.BaselineAudit",
    ),
    _item(
        "Algorithm 3",
        "UNFAIR above epsilon/2",
        "differs on purpose: gamma + epsilon/2, as in the proof (note 1)",
        "equipoise.audits.estimated_rates.finding_from_rates",
    ),
    _item(
        "appendix A",
        "every estimate within 1 ± epsilon/12 with probability 1 - delta",
        'works. tau="exact" drops this and bounds the wrong verdict',
        "equipoise.audits.thresholds.ExactThreshold equipoise.audits.exact_tau.smallest_tau",
    ),
    # -- section 5
    _item(
        "Algorithm 2",
        "epsilon' = 1/10, tau' = 4 log(14K/delta)/epsilon'^2, tau = 576 log(14K/delta)/epsilon^2",
        "works",
        "equipoise.mixture.map_weights.ExpConstants",
    ),
    _item(
        "Algorithm 2",
        "theta-hat = TruncEst(D_ya, f, epsilon/(2 beta), delta/(14K), c, Theta)",
        "works in ExpAudit.published. The default fits by exact likelihood",
        "equipoise.audits.exp_audit.ExpAudit.published",
    ),
    _item(
        "Algorithm 2",
        "coarse weights by Online(tau', y, a)",
        "works",
        "equipoise.audits.exp_audit.ExpAudit._coarse_weights",
    ),
    _item(
        "Algorithm 2",
        "MAP oracle from coarse weights and fitted laws",
        "works",
        "equipoise.mixture.map_weights.FeatureCounts",
    ),
    _item(
        "Algorithm 2",
        "R = 3430 log(12K/delta)/(q_m epsilon^2). The proof has 14",
        "works: 12 in ExpAudit.published, 14 elsewhere (note 5)",
        "equipoise.mixture.map_weights.ExpConstants.map_features",
    ),
    _item(
        "Algorithm 2",
        "verdict without tests, estimates not clipped",
        "works. An empty denominator ends INCONCLUSIVE",
        "equipoise.audits.exp_audit.ExpAudit.published "
        "equipoise.audits.exp_finding.finding_from_weights",
    ),
    _item(
        "Remark 2 (cost of Exp-Audit)",
        "the c_lab term does not depend on epsilon",
        "holds",
        "equipoise.bounds.theorems.expectation",
    ),
    _item(
        "Remark 3",
        "truncated samples, MAP oracles for exponential families",
        "works",
        "equipoise.mixture.truncated_fit.fit_truncated equipoise.mixture.map_weights.map_bias",
    ),
    _item(
        "Remark 4",
        "a classifier within O(epsilon) of the Bayes error",
        "works. Measured as epsilon shrinks",
        "equipoise.mixture.bayes_classifier.BayesClassifier paper.parameters.run",
    ),
    _item(
        "Remark 4",
        "fairness and accuracy traded off by the recovered parameters",
        "works. Compared with the exact frontier",
        "equipoise.mixture.fairness_accuracy.fairness_accuracy_curve paper.parameters.run",
    ),
    _item(
        "Remark 5",
        "test condition (1) after lines 2 to 7, else switch to Algorithm 1",
        'works: switch="separation". Self-checks are the default',
        "equipoise.audits.exp_audit.ExpAudit._test_separation",
    ),
    # -- appendix B
    _item(
        "Lemma on the MAP oracle",
        "errs with probability at most epsilon q_m/36",
        "the exponent has a slip (note 14). Our default measures the bias instead",
        "equipoise.mixture.map_weights.map_bias paper.notes.run",
    ),
    _item(
        "Lemma on Taylor's expansion",
        "1/4 of the squared distance",
        "does not hold: it is 1/16 (note 14)",
        "paper.notes.run",
    ),
    _item(
        "Algorithm 4",
        "TruncEst: start, steps on fresh samples, projection, repeats, majority",
        "works, with counts of one's own",
        "equipoise.mixture.trunc_est.trunc_est",
    ),
    _item(
        "Algorithm 5",
        "SampleGradient",
        "works",
        "equipoise.mixture.trunc_est._accepted_draw",
    ),
    _item(
        "Theorem of Lee et al.",
        "n, m, eta, kappa_f, lambda_f, rho, G",
        "works, in logarithms: 10^111 steps and more (note 15)",
        "equipoise.mixture.trunc_est.trunc_est_constants",
    ),
    _item(
        "Remark on repeats",
        "majority of O(log 1/delta) candidates",
        "works. Gives 3 sqrt(3) epsilon, not sqrt(3) epsilon (note 16)",
        "equipoise.mixture.trunc_est._choose_by_majority",
    ),
    _item(
        "Proposition, Remark (Lipschitz)",
        "gradient of W is the mean of T, its Hessian the covariance",
        "works",
        "equipoise.mixture.families.Family.mean_statistics",
    ),
    _item(
        "Table 3",
        "Exponential, Weibull, continuous Bernoulli, multivariate Gaussian",
        "hold, Weibull for k >= 1 only (note 18)",
        "paper.families.run equipoise.mixture.families.Weibull",
    ),
    _item(
        "Table 3",
        "continuous Poisson: W' = W'' = e^theta",
        "does not hold. Normalised numerically here (note 17)",
        "equipoise.mixture.families.ContinuousPoisson",
    ),
    _item(
        "appendix C",
        "concentration of the negative binomial, Algorithm 6",
        'works. A sharper Chernoff bound on the verdict itself with tau="exact"',
        "equipoise.history.past.Past.rows_until equipoise.audits.tau_audit.Online "
        "equipoise.audits.exact_tau.smallest_tau",
    ),
    # -- experiments
    _item(
        "Remark 6 (Empirical Choices)",
        "the guarantees do not depend on the classifier. Logistic regression, public tables",
        "works, with classifiers and tables of your own too",
        "paper.tables.CLASSIFIERS paper.tables.register_csv",
    ),
    _item(
        "Remark 6 (Empirical Choices)",
        "Adult without the assumptions: Exp-Audit still costs less and estimates well",
        "costs less where features are free. Verdicts are not always right: see the claims",
        "paper.embedded.run",
    ),
    _item(
        "appendix D.1",
        "Adult (48,842 rows), Law School (20,798 rows), sex as A",
        "works. Law School is read from your file",
        "paper.tables.read_people",
    ),
    _item(
        "Table 4",
        "columns of Adult",
        "holds for complete rows",
        "paper.tables.describe_columns",
    ),
    _item(
        "Table 5",
        "columns of Law School",
        "holds but for race: two values in the public file, six in the paper",
        "paper.tables.describe_columns",
    ),
    _item(
        "appendix D.1",
        "classifiers all_LR, wo_A_LR, fair, random, sense_attr",
        "works. Ours are encoded alike for training and deciding (notes 22, 23)",
        "paper.tables.CLASSIFIERS",
    ),
    _item(
        "Figures 1 (top), 2, 3",
        "cost against tau, estimate against labels",
        "reproduced",
        "paper.blackbox.run",
    ),
    _item(
        "appendix D.1",
        "about 50% less cost for all classifiers",
        "holds but for sense_attr on Adult (0.81)",
        "paper.blackbox.run",
    ),
    _item(
        "appendix D.1",
        "five seeds 1092, 42, 13, 729, 333",
        "works: --paper-seeds. The page has more runs",
        "paper.page.PAPER_SEEDS",
    ),
    _item(
        "appendix D.2",
        "synthetic population",
        "reproduced. The paper does not give its means (note 20)",
        "paper.synthetic.make_world",
    ),
    _item(
        "Figures 1 (bottom), 4",
        "cost of both audits over epsilon",
        "reproduced where features are free. Where features have a price, the authors' code "
        "charged Exp-Audit's features to RS-Audit (note 7)",
        "paper.synthetic.run",
    ),
    _item(
        "appendix D.2",
        "tau at most 1000, R at most 20,000",
        "shown three ways: the code's constants, the printed ones with caps, and without",
        "paper.synthetic.REGIMES",
    ),
    _item(
        "Table 6",
        "share of right verdicts, synthetic",
        "reproduced. Above epsilon = 0.1 either answer is right (note 11)",
        "paper.synthetic.correctness",
    ),
    _item(
        "appendix D.2",
        "TruncEst on the positively classified points",
        "run beside exact likelihood, on synthetic data and on Adult",
        "paper.trunc_est_laws.fit_by_trunc_est",
    ),
    _item(
        "appendix D.2",
        "Adult embedded by a network 64, 32, 10",
        "works. Five networks, tanh units",
        "paper.embedded.embed_adult",
    ),
    _item(
        "Figures 1 (middle), 5",
        "cost of both audits on embedded Adult",
        "reproduced where features are free. Where features have a price, the authors' code "
        "charged Exp-Audit's features to RS-Audit (note 7)",
        "paper.embedded.run",
    ),
    _item(
        "appendix D.2",
        "verdicts on Adult always right",
        "does not hold for Exp-Audit. Depends on network and estimator",
        "paper.embedded.run",
    ),
    _item(
        "section 6",
        "RS-Audit's estimate slightly closer to the true EOD than Exp-Audit's",
        "depends on the data: see the claims",
        "paper.synthetic.run paper.embedded.run",
    ),
    _item(
        "section 5, appendix B",
        "iid samples are unaffected by delay",
        "true of the past. Online the audits count in request order (note 25)",
        "equipoise.audits.base.Audit",
    ),
    _item(
        "section 7",
        "future work: a classifier known only by its class",
        "goes beyond: thresholds and half-spaces are learnt",
        "equipoise.mixture.learned_rules.learn_rule",
    ),
    _item(
        "section 7",
        "future work: costs that are not uniform",
        "goes beyond: prices by group and by person",
        "equipoise.question.Costs.of equipoise.audits.base.Audit.ask",
    ),
)
