"""Label sets in a scikit-learn pipeline: TF–IDF, a sparse linear model, and a grid search over both.

    python examples/label_sets.py

News have several topics each. With the sparsemax loss, the proportion of a topic can be exactly zero. The
grid search chooses the weights of words, the regularization and the size of the sets at once.
"""

from __future__ import annotations

import random

from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MultiLabelBinarizer

from fenchel.sklearn import SparsemaxClassifier

TOPICS = {
    "grain": ["wheat", "corn", "harvest", "tonnes", "crop"],
    "oil": ["crude", "barrels", "opec", "refinery", "drilling"],
    "money": ["bank", "rate", "dollar", "currency", "interest"],
    "ship": ["port", "vessel", "cargo", "strike", "freight"],
}
COMMON = [
    "the",
    "market",
    "said",
    "officials",
    "today",
    "prices",
    "would",
    "week",
    "government",
    "trade",
]


def make_news(count: int, seed: int) -> tuple[list[str], list[list[str]]]:
    """Texts with one to three topics each, and these topics."""
    draw = random.Random(seed)
    texts, topics = [], []
    for _ in range(count):
        chosen = draw.sample(list(TOPICS), k=draw.choice([1, 1, 2, 2, 3]))
        words = draw.choices(COMMON, k=8)
        words += [draw.choice(TOPICS[draw.choice(chosen)]) for _ in range(8)]
        draw.shuffle(words)
        texts.append(" ".join(words))
        topics.append(chosen)
    return texts, topics


def main() -> GridSearchCV:
    """Fit the pipeline, and print what was chosen and two predictions."""
    names = MultiLabelBinarizer()
    texts, topics = make_news(300, seed=0)
    labels = names.fit_transform(topics)
    pipeline = Pipeline([("words", TfidfVectorizer()), ("labels", SparsemaxClassifier())])
    grid = {
        "words__sublinear_tf": [False, True],
        "labels__C": [0.1, 1.0, 10.0],
        "labels__inverse_temperature": [0.5, 1.0, 1.5, 2.0],
    }
    search = GridSearchCV(pipeline, grid, scoring="f1_micro", cv=3).fit(texts, labels)
    print(f"chosen: {search.best_params_}, F1 {100 * search.best_score_:.1f} %")

    new, truth = make_news(100, seed=1)
    score = float(search.score(new, names.transform(truth)))  # pyright: ignore[reportArgumentType]
    print(f"new texts: {100 * score:.0f} % F1")
    for text, p in zip(new[:2], search.predict_proba(new[:2]), strict=True):
        shares = {
            name: round(float(share), 2) for name, share in zip(names.classes_, p, strict=True)
        }
        print({name: share for name, share in shares.items() if share > 0}, "—", text)
    return search


if __name__ == "__main__":
    main()
