"""Where the paper's text, theorems or published numbers do not hold or can be read two ways.

``WORDS`` holds the notes; what they name in braces is measured by the functions above it.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from scipy.special import ndtr

from equipoise.audits.estimated_rates import paper_epsilon, paper_tau
from equipoise.bounds import family_bound
from equipoise.mixture import StructuralConstants, trunc_est_constants
from equipoise.question import Costs, Question
from equipoise.simulation import simulate
from equipoise.worlds import CellWorld
from paper.page import Chapter, Settings
from paper.synthetic import (
    NEEDED_FEATURES,
    PROOF_FEATURES,
    VARIANCE,
    Expected,
    break_even,
    distance,
)
from paper.tables import classify, read_people

QUESTION = Question(gamma=0.0, epsilon=0.05, delta=0.01)
Values = dict[str, object]


def run(settings: Settings) -> Chapter:
    """Measure what the notes name."""
    del settings
    measured = _threshold() | _adult() | _constants() | _booking() | _map_bias()
    return Chapter("Notes on the paper", WORDS, measured)


def _threshold() -> Values:
    """Try Algorithm 3's printed threshold on a fair decision-maker."""
    world = CellWorld.from_shares({"A": (0.3, 0.2, 0.5, 0.4), "B": (0.25, 0.25, 0.5, 0.5)})
    question = Question(gamma=0.2, epsilon=0.05, delta=0.01)
    sim = simulate("baseline", world, question, Costs(), repeats=1000)
    printed = np.mean(sim.estimate > question.epsilon / 2.0)
    return {"gap": sim.gap, "printed": printed, "text": np.mean(sim.verdict == "UNFAIR")}


def _adult() -> Values:
    """Run RS-Audit where a group is never approved; compare "fair" with all_LR."""
    people = read_people("adult")
    worlds = {c: classify(people, c) for c in ("all_LR", "fair", "sense_attr")}
    dry = worlds["sense_attr"].as_cells
    sim = simulate("rs", dry, QUESTION, Costs(), repeats=100, tau=1000)
    free = (sim.verdict == "UNFAIR") & (sim.cost == 0.0)
    eods = {f"eod_{name}": world.gap("equalized_odds") for name, world in worlds.items()}
    return {"dry_unfair": np.mean(free), **eods}


def _constants() -> Values:
    """Evaluate the paper's constants: tau, R, the separation, Theorem 3, TruncEst."""
    # R is larger than needed, so each Chernoff step fails with delta/(12K) to that power.
    power = PROOF_FEATURES / NEEDED_FEATURES
    constants = StructuralConstants(0.25, 4.0, 5.0, alpha=0.5)
    tame = trunc_est_constants(constants, epsilon=0.05, delta=0.01, dimension=5)
    far = 3.0 * math.sqrt(3.0)  # of ten candidates six are at sqrt(3), four here
    near = sum(abs(far - c) <= 2.0 * math.sqrt(3.0) + 1e-12 for c in [far / 3.0] * 6 + [far] * 4)
    return {
        "tau_epsilon": paper_epsilon(1000, QUESTION, 2),
        "tau": paper_tau(QUESTION, 2),
        "twelve": 10 / 14 + 4 * (QUESTION.delta / 24.0) ** power * 2.0 / QUESTION.delta,
        "needed": NEEDED_FEATURES,
        "times": power,
        "used": distance() / VARIANCE,
        # (48 max(L, beta) beta + 3 lambda)/(8 kappa beta^2) is above 6 for kappa <= 1 and
        # L, beta >= 1; the group with q = 0.4 needs less than the other.
        "asked": [math.sqrt(6.0 * math.log(10.0 * 0.6 / (0.4 * e))) for e in (0.8, 0.001)],
        "labels": [family_bound(0.05, d, 0.2, 0.2).labels for d in (0.01, 0.2, 0.3)],
        "tame": str(tame),
        "far": far,
        "near": near,
    }


def _booking() -> Values:
    """Compare the published bookkeeping with the right one, and what Exp-Audit costs."""
    at = Expected.of("as run", replace(QUESTION, epsilon=0.1))
    (large, _), (small, needed) = (break_even(replace(QUESTION, epsilon=e)) for e in (0.1, 0.001))
    features = [
        Expected.of("without caps", replace(QUESTION, epsilon=e)).features for e in (0.1, 0.01)
    ]
    return {
        "booked": at.booked((0.5, 1.0)),
        "rs": 0.5 * at.rs + at.rs_failures,
        "exp": 0.5 * (at.coarse + at.features) + at.coarse_failures,
        "above": [large, small, needed],
        "slope": math.log(features[1] / features[0]) / math.log(0.01 / 0.1),
    }


def _map_bias() -> Values:
    """Compute the bias of MAP counts for q = 0.3 where outcomes overlap, laws and prior known."""
    here, q = distance() / math.sqrt(VARIANCE), 0.3
    found: Values = {"sigmas": here}
    for name, d in {"one": 1.0, "two": 2.0, "three": 3.0, "here": here}.items():
        cut = d / 2.0 - math.log(q / (1.0 - q)) / d  # outcome 1 lies at d, outcome 0 at 0
        found[name] = (q * float(ndtr(d - cut)) + (1.0 - q) * float(ndtr(-cut))) / q - 1.0
    return found


WORDS = """
Places where the text, a theorem or a published number does not hold or can be read in two ways, and
what Equipoise does there. None touches the paper's ideas. Most are slips of the kind that any paper
of its size has. “The code” is the authors' repository,
<https://github.com/nirjhar-das/fairness_audit_partial_feedback>.

1. **Threshold of the Baseline** (Algorithm 3, last line: UNFAIR above epsilon/2). The proof,
   Algorithm 1 and the text have gamma + epsilon/2, and so have we. With gamma = 0.2 and a gap of
   {{ gap | n(3) }} (FAIR) the printed rule says UNFAIR in {{ printed | pct }} of 1000 runs, the
   rule of the text in {{ text | pct }}.
2. **Where the saving comes from** (section 6: RS-Audit costs about 50% less). The ratio is right
   and does not depend on tau. Part of it comes from the printed Baseline forgetting its labels at
   the start of each phase, which no auditor has to do. On Law School that is nearly all of it (see
   the black-box chapter).
3. **A group that is never approved** (Algorithm 1, Past). Past does not end if no person of the
   group was approved, as for the classifier f = A of the experiments, which use exact shares
   instead. Our
   RS-Audit gives the verdict of the free check where the past runs dry: UNFAIR at no cost in
   {{ dry_unfair | pct }} of 100 runs for f = A on Adult.
4. **tau in the experiments** (5 to 1000, R up to 20,000). These have no guarantee: tau = 1000 at
   delta = 0.01 belongs to epsilon = {{ tau_epsilon | n(3) }}, and epsilon = 0.05 asks for tau =
   {{ tau | int | n }}. The code has smaller constants than the algorithms, 2 log(24/delta)/epsilon²
   for tau and 500 log(8/delta)/(q_m epsilon²) for R.
5. **log(12K/delta) in Algorithm 2, log(14K/delta) in its proof.** With the constant 3430 both are
   enough: the union bound adds up to {{ twelve | n(3) }} delta with log(12K/delta).
   `ExpAudit.published` has the printed one, the default the proof's.
6. **The constant in R** (3430). The Chernoff step needs 3 · 18.5² / 0.9 / (1 - 1/36) =
   {{ needed | n }}. The printed one is {{ times | n(3) }} times as much. (The proof bounds the
   coarse weight by 1.1 q. From N within 1 ± 1/10 of its mean follows q/0.9.)
7. **Feature cost of Exp-Audit** (figures 1, 4, 5, experiments/partial_feedback_gaussian.py, main(),
   commit b189592). `curr_sample_cost_2`, the feature cost of RS-Audit, is set to 0 at the start of
   each group's MAP phase and then counts that phase. Exp-Audit's own counter stops after the coarse
   phase. So RS-Audit pays for the features of Exp-Audit's second group, and not for its own. Our
   synthetic population, epsilon = 0.1, c = (0.5, 1), expected costs as run: as booked RS-Audit
   {{ booked[0] | n }} and Exp-Audit {{ booked[1] | n }}. Booked on the audit that asked, RS-Audit
   {{ rs | n }} and Exp-Audit {{ exp | n }}. Where features are free nothing can be misbooked, and
   there Exp-Audit is cheaper, as section 6 says. But the code's list of prices for the synthetic
   data has no pair (0, 1).
8. **Published result files**, the sources marked (file) above. Adult:
   `results_gaussian/algorithm_two` and `algorithm_exp`,
   `adult_manolis/LR/full_data/20260126-174900.csv` (commit f8fd621, later than the preprint, whose
   own file is not there). In 40 of the 50 rows of RS-Audit with c_feat > 0 the failed overrides
   (label_cost/c_lab) outnumber all requests (sample_cost/c_feat). This cannot be, because each
   override is
   a request. In 2 of the 75 rows of Exp-Audit `pred_fair` is not `true_fair` (run 4, epsilon =
   0.2), where the text says always right. Synthetic: the rows shown in experiments/plots.ipynb
   (commit b189592), which have its epsilons and prices. Run 5 at epsilon = 0.001, true EOD 0.171.
9. **When Exp-Audit is cheaper** (“significantly lower”). At the printed constants (R with
   log(12K/delta)) where c_lab
   P[Y=0|f=0] exceeds {{ above[0] | n(3) }} c_feat at epsilon = 0.1 and {{ above[1] | n(3) }}
   c_feat at 0.001. With the R that the proof needs: {{ above[2] | n(2) }}.
10. **A cost that does not depend on epsilon.** The term with c_feat is of order 1/epsilon² by
    Theorem 4 itself (requests grow like epsilon^{{ slope | n(3) }}). There the cap on R makes the
    cost flat. At c_feat = 0, the price of Figure 1, it is flat with and without the cap. Section 6
    also says that RS-Audit's cost increases with epsilon. It increases as epsilon decreases.
11. **Truth in Table 6** (FAIR at epsilon = 0.8, 0.5, 0.25 with gamma = 0). FAIR means a gap of 0.
    For 0 < gap <= epsilon either answer is right. The table and the code take FAIR for gap <=
    epsilon. Under the definition no run of the table is wrong. (The text says so of 0.25.)
12. **Separation in the synthetic data** (“ensure the separation condition during construction”).
    |theta_1 - theta_0| is {{ used | n(3) }}. Whatever kappa <= 1 and L, beta >= 1 are, the
    condition asks for more than {{ asked[0] | n(3) }} at epsilon = 0.8 and
    {{ asked[1] | n(3) }} at 0.001. (beta is any number with balls of radius 1/beta inside Theta.
    A larger one lowers what the condition asks for. Its price is TruncEst's precision epsilon/(2
    beta), so more past. With beta = L it is 11 standard deviations at epsilon = 0.1.)
13. **MAP counts without separation** are biased, and more features do not help. Two normal laws, q
    = 0.3, laws and prior known: R_1/R is off by {{ one | pct(1) }} at 1 sigma, {{ two | pct(1) }}
    at 2 sigma, {{ three | pct(1) }} at 3 sigma, and {{ here | pct(2) }} at the {{ sigmas | n(3) }}
    sigma of the synthetic experiment.
14. **Taylor expansion** (lemma on (W(theta_1) + W(theta_2))/2). The second-order term has 1/4 in
    the lemma and 1/8 where it is used. It is 1/16: for W = theta²/2 at 2 and 0 the difference is
    0.5, and 1/4 gives 2, 1/8 gives 1. So the exponent of the MAP error has kappa/8 in place of
    kappa/4. The separation condition changes on its way, in units of (16 max(L, beta) beta +
    lambda)/(kappa beta²) log(…). The assumption has 3/8. The proof of Theorem 4 starts from 6/8,
    keeps 3/8 and calls the lemma on the MAP oracle with 3/16. That lemma's proof quotes 3/8 and
    puts 6/8 into the exponent. Its last line needs these 6/8, and 12/8 with the right Taylor
    factor: four times the square that the assumption grants. (Our Exp-Audit measures the bias of
    MAP counts on its labels.)
15. **Steps of TruncEst** (m >= G log(…), polynomial). For tame laws (kappa = 1/4, lambda = 4, alpha
    = 1/2, d = 5, epsilon = 0.05) they are {{ tame }}. That proves that the method is polynomial,
    but
    it cannot set a default. `mixture.trunc_est` takes your own n, m and eta, and
    [the mixture page](understand/mixture.md) has its error over the steps.
16. **Majority choice in TruncEst** (within sqrt(3) epsilon of theta*). The rule, close to more than
    half of the candidates within 2 sqrt(3) epsilon, only gives 3 sqrt(3) epsilon. Take ten
    candidates, six at 1.73 epsilon and four at {{ far | n(3) }} epsilon on the same side. Each of
    the four has {{ near }} within reach and may be returned. Algorithm 4 divides its epsilon by
    sqrt(3) first, so Algorithm 2, whose proof takes epsilon, gets 3 epsilon.
17. **Continuous Poisson** (table of families: W' = W'' = e^theta). That is the Poisson law on whole
    numbers. Divided by Gamma(x+1) on the half-line they are not (see the families).
18. **Weibull** is listed without a condition on k. The density is log-concave for k >= 1 only.
19. **Theorem 3**. Its log(1/(4 delta)) says something for delta < 1/4 only: epsilon = 0.05, p = q =
    0.2 gives {{ labels[0] | n(2) }} labels at delta = 0.01, {{ labels[1] | n(2) }} at 0.2,
    {{ labels[2] | n(2) }} at 0.3. The last line of the proof drops q from the denominator, and
    the lemma on the divergence writes 1 + 4 epsilon where its proof has 1 + 8 epsilon. The sum over
    a holds on the fair world, where each group has its own alternative, the sum over y up to a
    factor of 3/2, since q < 1/3.
20. **Base rate of the synthetic data**: “P[Y=1|A=1] = 0.4” and, later, “q_(1|1) = 0.7 and q_(1|0) =
    0.4”. The code has the second, and so have we.
21. **Other settings.** The code has seed 1029 (text 1092), twelve values of tau (seven), variance 3
    (4), and adult.data alone, 32,561 rows (48,842). Its Law School classifiers are trained on
    SMOTE-resampled rows with class weights 99:1. We follow the text.
22. **“fair” is not trained to be fair** (get_f_0()). For logistic regression the code calls the
    training without fair=True: its “fair” is all_LR. Ours is trained under equalized odds. True EOD
    on Adult {{ eod_fair | n(2) }}, all_LR {{ eod_all_LR | n(2) }}. That is one training sample: one
    seed of the classifier, as in the paper, where the runs differ in the audit's seeds only.
23. **Scaled for training, unscaled for deciding** (clf_pipeline(), get_f_0()). The code scales the
    training rows and not the rows that it decides on. We encode once.
24. **Number of samples** (figures 2 and 3, “requested labels”). The code's counter starts anew for
    y = 1 and counts approved people too. We count requests to denied people over all phases.
25. **Outcomes that take time** (“being iid are unaffected by delay”). True of the past. Online,
    where failures show early, stopping at the tau-th label to arrive is biased. Our audits count in
    request order.
"""
