# shellcheck shell=sh
# A small project at /app/shop, the same every time. Runs with sh in the container.
set -e
mkdir -p /app/shop/shop /app/shop/tests /app/shop/data /app/shop/logs
cd /app/shop

cat >README.md <<'END'
# shop

Prices, carts and reports of a small shop.

    python3 -m unittest          # tests
    python3 -m shop.cli          # asks for an order
    python3 -m http.server 8765  # serves this folder

Prices are in cents. Reports go to `reports/`.
END

touch shop/__init__.py tests/__init__.py

cat >shop/cart.py <<'END'
"""A cart holds quantities of products."""

from shop.prices import price_of


class Cart:
    def __init__(self):
        self.items = {}

    def add(self, product, quantity=1):
        if quantity < 1:
            raise ValueError(f"quantity must be positive: {quantity}")
        self.items[product] = self.items.get(product, 0) + quantity

    def remove(self, product):
        del self.items[product]

    def total(self):
        return sum(price_of(product) for product in self.items)

    def __len__(self):
        return sum(self.items.values())
END

cat >shop/prices.py <<'END'
"""Prices in cents."""

PRICES = {
    "apple": 35,
    "bread": 290,
    "cheese": 450,
    "coffee": 1250,
    "milk": 110,
    "pasta": 180,
    "rice": 220,
    "soap": 95,
    "tea": 640,
}

VAT = 0.07


def price_of(product):
    try:
        return PRICES[product]
    except KeyError:
        raise LookupError(f"unknown product: {product}") from None


def with_vat(cents):
    return round(cents * (1 + VAT))
END

cat >shop/report.py <<'END'
"""Totals by customer."""

import csv
from collections import Counter


def totals(path):
    result = Counter()
    with open(path, newline="") as file:
        for row in csv.DictReader(file):
            result[row["customer"]] += int(row["cents"])
    return result


def print_totals(path)
    for customer, cents in totals(path).most_common(5):
        print(f"{customer:12} {cents / 100:10.2f}")
END

cat >shop/cli.py <<'END'
"""Asks for an order."""

from shop.cart import Cart

if __name__ == "__main__":
    cart = Cart()
    product = input("Product: ")
    quantity = int(input("Quantity: "))
    cart.add(product, quantity)
    print(f"{len(cart)} x {product}: {cart.total() / 100:.2f}")
END

cat >tests/test_cart.py <<'END'
import unittest

from shop.cart import Cart


class CartTest(unittest.TestCase):
    def test_is_empty_at_first(self):
        self.assertEqual(len(Cart()), 0)

    def test_adds_quantities(self):
        cart = Cart()
        cart.add("apple", 2)
        cart.add("apple")
        self.assertEqual(len(cart), 3)

    def test_total_counts_quantities(self):
        cart = Cart()
        cart.add("apple", 3)
        cart.add("bread")
        self.assertEqual(cart.total(), 395)

    def test_rejects_nothing(self):
        with self.assertRaises(ValueError):
            Cart().add("apple", 0)
END

cat >tests/test_prices.py <<'END'
import unittest

from shop.prices import price_of, with_vat


class PricesTest(unittest.TestCase):
    def test_knows_products(self):
        self.assertEqual(price_of("milk"), 110)

    def test_rejects_unknown_products(self):
        with self.assertRaises(LookupError):
            price_of("gold")

    def test_adds_vat(self):
        self.assertEqual(with_vat(1000), 1070)
END

awk 'BEGIN {
  split("Acme Bolt Corax Dunn Elko Farrow Gant", names, " ")
  print "id,customer,cents"
  for (i = 1; i <= 1000; i++) printf "%d,%s,%d\n", i, names[i * 13 % 7 + 1], i * 37 % 5000 + 100
}' >data/orders.csv

awk 'BEGIN {
  for (i = 1; i <= 3000; i++) {
    level = i % 97 == 0 ? "ERROR" : i % 11 == 0 ? "WARN" : "INFO"
    text = level == "ERROR" ? "payment failed: connection reset by peer" : "request served"
    printf "2026-03-01T%02d:%02d:%02d %-5s order=%d %s\n", i / 3600, i / 60 % 60, i % 60, level, i, text
  }
}' >logs/app.log

printf '__pycache__/\n' >.gitignore
git init --quiet --initial-branch=main
git config user.name Ada
git config user.email ada@example.org
export GIT_AUTHOR_DATE='2026-03-01T12:00:00Z' GIT_COMMITTER_DATE='2026-03-01T12:00:00Z'
for part in README.md shop tests data logs .gitignore; do
  git add "$part"
  git commit --quiet --message "Add $part"
done
